#include "tuner/server/metrics.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/api/direct_tuner.h"

namespace espalier {
namespace {

using testing::HasSubstr;

TEST(Metrics, TextNamesWhatIsCountedAndWhatIs) {
  DirectTuner tuner;
  ASSERT_TRUE(tuner.Post(AgentHello{"oak", 3, {}}).status.ok());
  Metrics metrics;
  metrics.CountBatch(5, 0.0015);
  metrics.CountBatch(2, 0);
  metrics.CountRequest("grpc", "GetStudy", "NOT_FOUND");
  metrics.CountResize(0.004);
  const auto text = metrics.Text(tuner, 7);
  ASSERT_TRUE(text.ok());
  EXPECT_THAT(*text, HasSubstr("espalier_events_total 7"));
  EXPECT_THAT(*text, HasSubstr("espalier_batch_events_count 2"));
  EXPECT_THAT(*text, HasSubstr("espalier_commit_seconds_count 1"));
  EXPECT_THAT(*text, HasSubstr("espalier_regroup_pause_seconds_bucket{le=\"0.005\"} 1"));
  EXPECT_THAT(*text, HasSubstr("method=\"GetStudy\""));
  EXPECT_THAT(*text, HasSubstr("code=\"NOT_FOUND\""));
  EXPECT_THAT(*text, HasSubstr("espalier_studies{state=\"RUNNING\"} 0"));
  EXPECT_THAT(*text, HasSubstr("espalier_trials{state=\"PRUNED\"} 0"));
  EXPECT_THAT(*text, HasSubstr("espalier_slots_total 3"));
  EXPECT_THAT(*text, HasSubstr("espalier_slots_held 0"));
  EXPECT_THAT(*text, HasSubstr("espalier_queue_length 7"));
  EXPECT_THAT(*text, HasSubstr("process_resident_memory_bytes"));
  EXPECT_GT(ResidentBytes(), 0);
}

}  // namespace
}  // namespace espalier
