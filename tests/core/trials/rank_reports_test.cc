#include "tuner/core/trials/rank_reports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/core/core_fixture.h"

namespace espalier {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// A core with a study whose trials are of programs with several ranks: on the pool, or of clients.
class RankReportsTest : public CoreTest {
 protected:
  TrialId OnThePool(bool mean, const PluginSpec& pruner = {"none", {}}) {
    StudySpec spec = Spec(4);
    spec.mean_of_ranks = mean;
    spec.pruner = pruner;
    EXPECT_TRUE(Step(CreateStudy{spec, false}).status.ok());
    Join(2);
    others_ = {starts_.at(1).trial};
    return starts_.at(0).trial;
  }
  TrialId OfAClient(bool mean, const PluginSpec& pruner = {"none", {}}) {
    StudySpec spec = Spec(8);
    spec.name = "told";
    spec.kind = StudyKind::kByClients;
    spec.mean_of_ranks = mean;
    spec.pruner = pruner;
    EXPECT_TRUE(Step(CreateStudy{spec, false}).status.ok());
    others_.clear();
    for (int i = 0; i < 3; ++i) others_.push_back(Step(AskTrial{"told", {}, {}}).trial());
    return Step(AskTrial{"told", {}, {}}).trial();
  }

  Reply Tell(TrialId id, int rank, std::int64_t step, double value, int ranks = 2) {
    return Step(TellValue{.trial = id,
                          .step = step,
                          .value = value,
                          .final = false,
                          .from = {.rank = rank, .ranks = ranks}});
  }
  Reply TellFinal(TrialId id, int rank, double value) {
    return Step(TellValue{.trial = id,
                          .step = {},
                          .value = value,
                          .final = true,
                          .from = {.rank = rank, .ranks = 2}});
  }
  bool Stops(TrialId id, int rank, std::int64_t step, double value) {
    const Reply reply = Step(
        ReportValue{.trial = id, .step = step, .value = value, .from = {.rank = rank, .ranks = 2}});
    EXPECT_TRUE(reply.status.ok()) << reply.status;
    return reply.should_stop();
  }
  bool AsksToStop(TrialId id, std::int64_t step) {
    const Reply reply = Step(AskVerdict{id, step});
    EXPECT_TRUE(reply.status.ok()) << reply.status;
    return reply.should_stop();
  }
  const Trial& At(TrialId id) { return core_.state().trials.at(id); }
  std::vector<double> ValuesOf(TrialId id) {
    std::vector<double> values;
    for (const IntermediateValue& each : At(id).values) values.push_back(each.value);
    return values;
  }

  std::vector<TrialId> others_;
};

TEST_F(RankReportsTest, EqualReportsCountOnceAndUnlikeOnesAreRefused) {
  for (const TrialId id : {OnThePool(false), OfAClient(false)}) {
    EXPECT_EQ(Tell(id, 1, 1, 0.5).note(), "") << "any rank may be the first";
    EXPECT_EQ(Tell(id, 0, 1, 0.5).note(), "");
    EXPECT_EQ(Tell(id, 1, 1, 0.5).note(), "") << "told again";
    const Reply unlike = Tell(id, 0, 1, 0.75);
    EXPECT_TRUE(absl::IsFailedPrecondition(unlike.status));
    EXPECT_THAT(std::string(unlike.status.message()),
                HasSubstr(", step 1: rank 0 reports 0.75, and rank 1 has reported 0.5: report from "
                          "one rank alone, or let the study say \"ranks\": \"mean\""));
    EXPECT_EQ(Tell(id, 1, 1, 0.75).note(),
              "step 1 was already told as 0.5 by rank 1; this value is ignored");
    EXPECT_TRUE(Tell(id, 0, 2, kNaN).status.ok());
    EXPECT_TRUE(Tell(id, 1, 2, kNaN).status.ok()) << "they are alike";
    EXPECT_FALSE(Tell(id, 1, 2, 1).status.ok());
    ASSERT_EQ(ValuesOf(id).size(), 2u);
    EXPECT_EQ(ValuesOf(id).front(), 0.5);
    EXPECT_EQ(At(id).state, TrialState::kRunning);
  }
}

TEST_F(RankReportsTest, TheMeanCountsOnceAllRanksHaveReported) {
  for (const TrialId id : {OnThePool(true), OfAClient(true)}) {
    EXPECT_TRUE(Tell(id, 2, 1, 3, 3).status.ok());
    EXPECT_TRUE(Tell(id, 0, 1, 1, 3).status.ok());
    EXPECT_TRUE(ValuesOf(id).empty());
    EXPECT_TRUE(Tell(id, 1, 1, 8, 3).status.ok());
    EXPECT_EQ(ValuesOf(id), std::vector<double>{4});
    // Rank 1 leaves step 2 out: it counts when a later one is whole.
    for (const int rank : {0, 2}) Tell(id, rank, 2, 1 + rank, 3);
    for (const int rank : {0, 1}) Tell(id, rank, 3, 5, 3);
    EXPECT_EQ(ValuesOf(id), std::vector<double>{4});
    Tell(id, 2, 3, 5, 3);
    EXPECT_EQ(ValuesOf(id), (std::vector<double>{4, 2, 5}));
    EXPECT_EQ(Tell(id, 1, 2, 9, 3).note(),
              "step 2 has counted without rank 1; this value is ignored");
    EXPECT_EQ(ValuesOf(id), (std::vector<double>{4, 2, 5}));
  }
}

TEST_F(RankReportsTest, WhatIsLeftAtTheEndIsTheMeanOfThoseThatCame) {
  const TrialId pool = OnThePool(true);
  const ReplicaId replica = starts_.at(0).replica;
  Tell(pool, 0, 1, 1);
  Step(ReplicaExited{replica, 0, 0, "", ""});
  EXPECT_EQ(At(pool).state, TrialState::kComplete) << At(pool).reason;
  EXPECT_EQ(ValuesOf(pool), std::vector<double>{1});
  const TrialId client = OfAClient(true);
  Tell(client, 1, 1, 2);
  Step(TellEnd{client, TrialState::kPruned, {}});
  EXPECT_EQ(At(client).value, 2);
  EXPECT_TRUE(At(client).ranks->values.empty());
}

TEST_F(RankReportsTest, AFinalValueIsOneForAllRanks) {
  const TrialId id = OnThePool(false);
  EXPECT_TRUE(TellFinal(id, 0, 0.5).status.ok());
  EXPECT_TRUE(TellFinal(id, 1, 0.5).status.ok());
  EXPECT_THAT(std::string(TellFinal(id, 1, 0.25).status.message()),
              AllOf(HasSubstr("the final value: rank 1 reports 0.25"),
                    HasSubstr("another rank has reported 0.5"), HasSubstr("mean")));
  EXPECT_EQ(At(id).value, 0.5);
}

TEST_F(RankReportsTest, AFinalValueMayBeTheMean) {
  const TrialId id = OnThePool(true);
  EXPECT_TRUE(TellFinal(id, 0, 1).status.ok());
  EXPECT_EQ(At(id).state, TrialState::kRunning);
  EXPECT_TRUE(TellFinal(id, 1, 2).status.ok());
  EXPECT_EQ(At(id).state, TrialState::kComplete);
  EXPECT_EQ(At(id).value, 1.5);
}

TEST_F(RankReportsTest, AllRanksAreToldTheSameAtAStep) {
  const TrialId id = OfAClient(false, {"median", {{"startup_trials", 1}}});
  EXPECT_FALSE(Stops(id, 0, 1, 5));
  EXPECT_FALSE(Stops(id, 0, 2, 5));
  // From here on the trial is one to prune, but rank 0 has been told to go on at step 2.
  for (const TrialId other : others_) {
    for (const std::int64_t step : {1, 2, 3}) Step(ReportValue{other, step, 1.0});
    Step(TellEnd{other, TrialState::kComplete, {1}});
  }
  EXPECT_FALSE(Stops(id, 1, 1, 5)) << "a rank that comes later";
  EXPECT_FALSE(Stops(id, 1, 2, 5));
  EXPECT_TRUE(Stops(id, 1, 3, 5));
  EXPECT_TRUE(Stops(id, 0, 3, 5));
  EXPECT_FALSE(AsksToStop(id, 2)) << "as before";
  EXPECT_TRUE(AsksToStop(id, 4));
  Step(TellEnd{id, TrialState::kPruned, {}});
  EXPECT_FALSE(Stops(id, 1, 2, 5)) << "also when it has ended";
  EXPECT_TRUE(Stops(id, 1, 3, 5));
}

TEST_F(RankReportsTest, AStopThatComesFromElsewhereIsOfTheNextStepToAllRanks) {
  const TrialId id = OnThePool(false);
  EXPECT_FALSE(AsksToStop(id, 7)) << "it need not report";
  Step(CancelTrial{id, TrialState::kPruned, ""});
  ASSERT_TRUE(Ended(At(id).state));
  EXPECT_FALSE(Tell(id, 1, 7, 1).should_stop());
  EXPECT_FALSE(Tell(id, 1, 6, 1).should_stop());
  EXPECT_TRUE(Tell(id, 1, 8, 1).should_stop());
  EXPECT_TRUE(AsksToStop(id, 8));
  EXPECT_FALSE(AsksToStop(id, 7));
}

TEST_F(RankReportsTest, ThePrunersVerdictOnAStepIsOfThatStep) {
  const TrialId id = OnThePool(false, {"median", {{"startup_trials", 1}}});
  const TrialId better = others_.front();
  for (std::int64_t step = 2; step <= 4; ++step) Tell(better, 0, step, 0.1);
  Step(TellValue{better, 5, 0.1, true});
  std::int64_t step = 1;
  while (step < 10 && !Tell(id, 0, step, 9).should_stop()) ++step;
  ASSERT_EQ(At(id).state, TrialState::kPruned);
  EXPECT_TRUE(Tell(id, 1, step, 9).should_stop());
  for (std::int64_t before = 1; before < step; ++before) {
    EXPECT_FALSE(Tell(id, 1, before, 9).should_stop()) << before;
  }
}

TEST_F(RankReportsTest, SurviveARestartOfTheService) {
  const TrialId id = OfAClient(true);
  Tell(id, 0, 1, 1);
  ASSERT_FALSE(AsksToStop(id, 3));
  Core again(core_.state(), {});
  const auto step = [&](const Event& event) {
    now_ = After(now_, 0.01);
    return again.Step(now_, event).reply;
  };
  step(TellValue{
      .trial = id, .step = 1, .value = 2, .final = false, .from = {.rank = 1, .ranks = 2}});
  ASSERT_EQ(again.state().trials.at(id).values.size(), 1u);
  EXPECT_EQ(again.state().trials.at(id).values.front().value, 1.5);
  step(StopStudy{"told"});
  EXPECT_FALSE(step(AskVerdict{id, 3}).should_stop());
  EXPECT_TRUE(step(AskVerdict{id, 4}).should_stop());
}

TEST_F(RankReportsTest, AProgramThatBeginsAnewIsComparedWithItself) {
  const TrialId id = OnThePool(false);
  const ReplicaId replica = starts_.empty() ? ReplicaId(1) : starts_.at(0).replica;
  Tell(id, 0, 1, 0.5);
  Step(StopStudy{"s"});
  Step(ReplicaExited{replica, -1, 15, "", ""});
  ASSERT_EQ(At(id).state, TrialState::kPaused);
  Step(ResumeStudy{"s"});
  Wait(60);
  ASSERT_EQ(At(id).state, TrialState::kRunning);
  EXPECT_EQ(Tell(id, 1, 1, 0.75).note(), "step 1 was already told as 0.5; this value is ignored");
  EXPECT_TRUE(Tell(id, 0, 1, 0.75).status.ok()) << "the ranks agree";
  EXPECT_FALSE(Tell(id, 0, 1, 0.75).should_stop());
}

TEST_F(RankReportsTest, KeepsWhatNewestStepsNeed) {
  const TrialId id = OfAClient(false);
  for (std::int64_t step = 1; step <= 100; ++step) Tell(id, 0, step, 1);
  EXPECT_EQ(At(id).ranks->values.size(), kRankStepsKept);
  EXPECT_EQ(At(id).ranks->values.rbegin()->first, 100);
  EXPECT_EQ(ValuesOf(id).size(), 100u);
}

TEST_F(RankReportsTest, StepsThatAreForgottenCountAsTheyAre) {
  const TrialId id = OfAClient(true);
  const auto steps = static_cast<std::int64_t>(kRankStepsKept) + 10;
  for (std::int64_t step = 1; step <= steps; ++step) Tell(id, 1, step, static_cast<double>(step));
  EXPECT_EQ(ValuesOf(id).size(), 10u);
  EXPECT_EQ(At(id).ranks->values.size(), kRankStepsKept);
}

TEST_F(RankReportsTest, KeepNoMoreValuesThanThese) {
  const TrialId id = OfAClient(true);
  TunerState state = core_.state();
  const int of_a_step = static_cast<int>(kRankValuesKept) / 2;
  for (const std::int64_t step : {1, 2}) {
    for (int rank = 0; rank < of_a_step; ++rank) state.Apply(RankValueTold{id, step, rank, 1});
  }
  Core core(std::move(state), {});
  const StepResult result = core.Step(now_, TellValue{.trial = id,
                                                      .step = 3,
                                                      .value = 1,
                                                      .final = false,
                                                      .from = {.rank = 0, .ranks = kMaxRanks}});
  ASSERT_TRUE(result.reply.status.ok());
  const Trial& trial = core.state().trials.at(id);
  ASSERT_EQ(trial.values.size(), 1u) << "the first step counts, as it is forgotten";
  EXPECT_EQ(trial.ranks->values.begin()->first, 2);
}

TEST_F(RankReportsTest, WithoutAStepItIsOneMoreValue) {
  const TrialId id = OfAClient(false);
  for (const int rank : {0, 1}) {
    Step(TellValue{
        .trial = id, .step = {}, .value = 1, .final = false, .from = {.rank = rank, .ranks = 2}});
  }
  EXPECT_EQ(ValuesOf(id).size(), 2u);
}

TEST_F(RankReportsTest, RefusesWhatIsNoRank) {
  const TrialId id = OfAClient(false);
  EXPECT_EQ(Tell(id, 2, 1, 1, 2).status.message(),
            "\"rank\": of 2 ranks, one has a number from 0 to 1, got 2");
  EXPECT_EQ(Tell(id, -1, 1, 1, 2).status.message(),
            "\"rank\": of 2 ranks, one has a number from 0 to 1, got -1");
  EXPECT_EQ(Tell(id, 0, 1, 1, 0).status.message(),
            "\"ranks\": a program has 1 to 4096 ranks, got 0");
  EXPECT_EQ(Tell(id, 0, 1, 1, kMaxRanks + 1).status.message(),
            "\"ranks\": a program has 1 to 4096 ranks, got 4097");
  EXPECT_TRUE(absl::IsNotFound(Step(AskVerdict{TrialId(99), 1}).status));
  EXPECT_TRUE(absl::IsInvalidArgument(Step(AskVerdict{id, -1}).status));
}

}  // namespace
}  // namespace espalier
