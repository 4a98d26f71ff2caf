#include "allocator/policies/yardsticks/scale_out.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/allocator/pools.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;

// Steps of known times: R(k) = 1, 1.9, 2.6, 3.0, 3.2, 3.3.
Job Known(std::int64_t id, int slots) {
  Job job = slots > 0 ? RunningJob(id, {{NodeId(1), slots}}, 0.5) : WaitingJob(id);
  job.max_profiled_replicas = 4;
  job.known_step_s = std::make_shared<const std::vector<double>>(
      std::vector<double>{1, 1 / 1.9, 1 / 2.6, 1 / 3.0, 1 / 3.2, 1 / 3.3});
  return job;
}

std::vector<int> SizesOf(const std::string& policy, const Pool& pool, const Options& options = {}) {
  const auto held = After(pool, Make(policy, options)->Allocate(pool));
  std::vector<int> sizes;
  for (const Job& job : pool.jobs) sizes.push_back(Total(held.at(job.id)));
  return sizes;
}

TEST(ScalingEfficiency, GrowsToWhereTheNextStepIsBelowTheThreshold) {
  // Efficiencies of the steps: 0.9, 0.74, 0.46, 0.27.
  const Pool pool{{Node(1, 8)}, {Known(1, 1)}};
  EXPECT_EQ(SizesOf("scaling_efficiency", pool), (std::vector<int>{3}));
  EXPECT_EQ(SizesOf("scaling_efficiency", pool, {{"threshold", 0.8}}), (std::vector<int>{2}));
  EXPECT_EQ(SizesOf("scaling_efficiency", pool, {{"threshold", 0.3}}), (std::vector<int>{4}));
  // Two at a time: (2.6 - 1) / 2 = 0.8, then (3.2 - 2.6) / (2 * 2.6 / 3) = 0.35.
  EXPECT_EQ(SizesOf("scaling_efficiency", pool, {{"step", 2}}), (std::vector<int>{3}));
}

TEST(ScalingEfficiency, TakesBackAStepThatWasNotWorthIt) {
  const Pool pool{{Node(1, 8)}, {Known(1, 5)}};
  const auto decisions = Make("scaling_efficiency")->Allocate(pool);
  ASSERT_EQ(decisions.size(), 1u);
  EXPECT_EQ(Total(decisions[0].placement), 3);
  EXPECT_THAT(decisions[0].reason, HasSubstr("shrinks 5 -> 3"));
  EXPECT_THAT(decisions[0].reason, HasSubstr("scaling efficiency"));
}

TEST(ScalingEfficiency, SharesWhatIsFreeAndMakesRoomForWhoWaits) {
  EXPECT_EQ(SizesOf("scaling_efficiency", {{Node(1, 4)}, {Known(1, 1), Known(2, 1)}}),
            (std::vector<int>{2, 2}));
  EXPECT_EQ(SizesOf("scaling_efficiency", {{Node(1, 3)}, {Known(1, 3), Known(2, 0)}}),
            (std::vector<int>{2, 1}));
}

TEST(UtilityCost, GrowsWhileTheEarlierEndIsWorthTheSlots) {
  const Pool pool{{Node(1, 8)}, {Known(1, 1)}};
  // From one to two: the end is 0.474 of the time earlier, and costs 2 / 1.9 - 1 = 0.053 more.
  EXPECT_EQ(SizesOf("utility_cost", pool, {{"utility", 0.1}}), (std::vector<int>{1}));
  EXPECT_EQ(SizesOf("utility_cost", pool, {{"utility", 0.2}}), (std::vector<int>{2}));
  EXPECT_EQ(SizesOf("utility_cost", pool, {{"price", 0}}), (std::vector<int>{6}));
  EXPECT_EQ(SizesOf("utility_cost", {{Node(1, 8)}, {Known(1, 4)}}, {{"utility", 0.2}}),
            (std::vector<int>{2}));
}

TEST(ScaleOut, GrowsByWholeSlotsOnly) {
  for (const char* policy : {"scaling_efficiency", "utility_cost"}) {
    EXPECT_THAT(std::string(MakePolicy(policy, {{"step", 1.5}}).status().message()),
                HasSubstr("option \"step\" needs a whole number from 1 to 1024, got 1.5"));
  }
}

}  // namespace
}  // namespace espalier
