// The simulated cluster beside the published results of the Pollux paper's simulator, job by job.

#include <map>

#include "allocator/simulator/application.h"
#include "allocator/simulator/loads/pollux_load.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace espalier {
namespace {

constexpr char kFolder[] = ESPALIER_POLLUX_LOADS;

Timeline Replay(const std::string& policy, const std::string& workload) {
  const auto load = ReadPolluxLoad(kFolder, workload);
  EXPECT_TRUE(load.ok()) << load.status();
  auto made = MakePolicy(policy, {{"share_spanned", 1}});
  EXPECT_TRUE(made.ok()) << made.status();
  auto timeline = SimulateCluster(*load, **made, PublishedOptions(policy));
  EXPECT_TRUE(timeline.ok()) << timeline.status();
  return timeline.ok() ? *timeline : Timeline{};
}

void ExpectTimes(const Timeline& timeline, const std::map<std::string, double>& published) {
  for (const TimelineRow& row : timeline.rows) {
    const auto expected = published.find(row.name);
    if (expected == published.end()) continue;
    EXPECT_EQ(row.ended_s - row.submitted_s, expected->second) << row.name;
  }
}

TEST(PublishedTimes, OfTiresias) {
  const Timeline timeline = Replay("tiresias", "workload-1");
  ExpectTimes(timeline, {{"cifar10-0", 953},
                         {"deepspeech2-1", 4182},
                         {"ncf-2", 122},
                         {"deepspeech2-3", 2545},
                         {"imagenet-11", 47644},
                         {"imagenet-157", 56121}});
  EXPECT_DOUBLE_EQ(FiguresOf(timeline).average_s, 2473.65);
}

TEST(PublishedTimes, OfOptimus) {
  const Timeline timeline = Replay("optimus", "workload-3");
  ExpectTimes(timeline, {{"ncf-0", 126},
                         {"cifar10-1", 684},
                         {"deepspeech2-4", 2868},
                         {"bert-10", 1652},
                         {"yolov3-72", 21489}});
  EXPECT_DOUBLE_EQ(FiguresOf(timeline).average_s, 3944.00625);
}

TEST(PolluxLoad, ReadsWhatAUserAskedFor) {
  const auto load = ReadPolluxLoad(kFolder, "workload-1");
  ASSERT_TRUE(load.ok()) << load.status();
  EXPECT_EQ(load->jobs.size(), 160u);
  EXPECT_EQ(load->jobs[1].name, "deepspeech2-1");
  EXPECT_EQ(load->jobs[1].submitted_s, 110);
  EXPECT_EQ(load->jobs[1].requested_slots, 6);
  EXPECT_EQ(load->jobs[1].requested_batch, 320);
  EXPECT_EQ(load->jobs[1].application->epochs(), 80);
}

TEST(PolluxLoad, ListsTheKnownWorkloads) {
  EXPECT_EQ(std::string(ReadPolluxLoad(kFolder, "workload-9").status().message()),
            "workload \"workload-9\" is unknown; known are workload-1, workload-2, workload-3, "
            "workload-4");
  EXPECT_EQ(ReadPolluxLoad("/nowhere", "workload-1").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace espalier
