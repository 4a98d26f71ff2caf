// Accumulators and states of the program in real processes that come and go.

#include <algorithm>

#include "base/random.h"
#include "gtest/gtest.h"
#include "tests/trial_runner/torch/elastic_training.h"

namespace espalier {
namespace {

constexpr std::int64_t kSamples = 411;

class AccumulatorTraining : public ElasticTraining {
 protected:
  std::unique_ptr<ReplicaHarness> Trial(
      const std::string& run, const std::map<std::string, std::string>& environment = {}) {
    return Harness(run,
                   {"samples=" + std::to_string(kSamples), "batch_size=24", "max_atomic=7",
                    "epochs=0", "compute_ms=1", "sums=true", "evaluations=2"},
                   environment);
  }

  // Whoever reported, and whoever had left in the course of the epoch: each sample was added once,
  // and the state of the epoch before was there. `whole`: nobody was lost.
  static void ExpectWholeSums(ReplicaHarness& harness, bool whole = true) {
    constexpr double kIndices = kSamples * (kSamples - 1) / 2.0;
    int reports = 0;
    for (const Said& said : harness.EverythingSaid()) {
      const auto* report = std::get_if<ReplicaReport>(&said.message);
      if (report == nullptr) continue;
      ++reports;
      if (whole) {
        EXPECT_EQ(report->extra.at("samples"), kSamples) << "epoch " << report->step;
        EXPECT_EQ(report->extra.at("indices"), kIndices) << "epoch " << report->step;
      } else {
        EXPECT_LE(report->extra.at("samples"), kSamples) << "epoch " << report->step;
      }
      EXPECT_GE(report->extra.at("last_epoch"), static_cast<double>(report->step - 1));
    }
    EXPECT_GT(reports, 0);
  }
};

TEST_F(AccumulatorTraining, GrowingAndShrinkingInMidEpochKeepsTheSums) {
  const std::string run = NewRun("run");
  const auto harness = Trial(run);
  const auto a = harness->Start();
  const auto b = harness->Start();
  const auto c = harness->Start();
  for (const auto id : {a, b, c}) harness->AwaitReady(id);
  harness->Regroup({a}, false, {a});
  AwaitSteps(run, 5);
  harness->Regroup({a, b, c});
  harness->AwaitRegrouped();
  AwaitSteps(run, 12);
  harness->Regroup({b});  // both who leave have samples to their name
  harness->AwaitRegrouped();
  AwaitSteps(run, 40);
  Stop(run);
  harness->AwaitMessage("the end", IsFinished);
  EXPECT_EQ(harness->AwaitExit(b), 0);
  ExpectWholeSums(*harness);
}

class AccumulatorInAnyMix : public AccumulatorTraining,
                            public ::testing::WithParamInterface<int> {};

TEST_P(AccumulatorInAnyMix, CountsEachSampleOnce) {
  Random random(static_cast<std::uint64_t>(GetParam()));
  const std::string run = NewRun("run");
  const auto harness = Trial(run);
  std::vector<std::int64_t> members{harness->Start()};
  harness->AwaitReady(members[0]);
  harness->Regroup(members);
  for (int event = 0; event < 12; ++event) {
    const bool settled = random.Below(3) > 0;
    if (settled) harness->AwaitRegrouped();
    if (members.size() < 4 && random.Below(2) == 0) {
      members.push_back(harness->Start());
      harness->AwaitReady(members.back());
      harness->Regroup(members, /*abandon=*/settled && random.Below(3) == 0);
    } else if (settled && members.size() > 1) {
      members.erase(members.begin() + static_cast<std::ptrdiff_t>(random.Below(members.size())));
      harness->Regroup(members);
    } else {
      harness->Regroup(members, /*abandon=*/settled && random.Below(3) == 0);
    }
  }
  harness->AwaitRegrouped();
  Stop(run);
  harness->AwaitMessage("the end", IsFinished);
  for (const std::int64_t id : members) EXPECT_EQ(harness->AwaitExit(id), 0);
  ExpectWholeSums(*harness);
}

INSTANTIATE_TEST_SUITE_P(Seeds, AccumulatorInAnyMix, ::testing::Range(1, 7));

TEST_F(AccumulatorTraining, SumsAndStatesSurviveAPauseInMidEpoch) {
  const std::string run = NewRun("run");
  std::string checkpoint;
  {
    const auto harness = Trial(run);
    const auto a = harness->Start();
    const auto b = harness->Start();
    harness->AwaitReady(a);
    harness->AwaitReady(b);
    harness->Regroup({a, b});
    AwaitSteps(run, 27);  // in the second epoch
    harness->Regroup({});
    EXPECT_EQ(harness->AwaitExit(a), 0);
    EXPECT_EQ(harness->AwaitExit(b), 0);
    for (const Said& said : harness->EverythingSaid()) {
      if (const auto* saved = std::get_if<ReplicaCheckpoint>(&said.message))
        checkpoint = saved->path;
    }
    ExpectWholeSums(*harness);
  }
  const auto harness = Trial(run, {{"ESPALIER_CHECKPOINT", checkpoint}});
  std::vector<std::int64_t> all;
  for (int i = 0; i < 3; ++i) all.push_back(harness->Start());
  for (const auto id : all) harness->AwaitReady(id);
  harness->Regroup(all);
  Stop(run);
  harness->AwaitMessage("the end", IsFinished);
  for (const auto id : all) EXPECT_EQ(harness->AwaitExit(id), 0);
  ExpectWholeSums(*harness);
}

TEST_F(AccumulatorTraining, LossOfAReplicaLosesNoMoreThanItsOwn) {
  const std::string run = NewRun("run");
  const auto harness = Trial(run);
  std::vector<std::int64_t> all;
  for (int i = 0; i < 3; ++i) all.push_back(harness->Start());
  for (const auto id : all) harness->AwaitReady(id);
  harness->Regroup(all);
  harness->AwaitRegrouped();
  AwaitSteps(run, 8);
  harness->Kill(all[1]);
  harness->Regroup({all[0], all[2]}, /*abandon=*/true);
  harness->AwaitRegrouped();
  constexpr std::int64_t kEpochSteps = 18;
  AwaitSteps(run, Steps(run).rbegin()->first + kEpochSteps);  // of a later epoch than the loss
  Stop(run);
  harness->AwaitMessage("the end", IsFinished);
  ExpectWholeSums(*harness, /*whole=*/false);
  // The epochs after the loss are whole again.
  const auto said = harness->EverythingSaid();
  const auto last = std::find_if(said.rbegin(), said.rend(), [](const Said& s) {
    return std::holds_alternative<ReplicaReport>(s.message);
  });
  ASSERT_NE(last, said.rend());
  EXPECT_GT(std::get<ReplicaReport>(last->message).step, 1);
  EXPECT_EQ(std::get<ReplicaReport>(last->message).extra.at("samples"), kSamples);
}

}  // namespace
}  // namespace espalier
