// Studies of the pool whose trials have to keep their figures within bounds.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "tests/core/core_fixture.h"
#include "tuner/core/state/study_facts.h"
#include "tuner/core/trials/sampler_history.h"

namespace espalier {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;
using testing::Eq;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsNan;

class Constraints : public CoreTest {
 protected:
  void Exit(ReplicaId replica) { Step(ReplicaExited{replica, 0, 0, "", ""}); }
  std::optional<std::int64_t> Best() { return BestTrial(core_.state(), study()); }
};

TEST_F(Constraints, TheNewestFiguresCount) {
  StudySpec spec = Within20(1);
  spec.constraints.push_back({"accuracy", true, 0.5});
  ASSERT_EQ(Refused(spec), "");
  Join(1);
  const ReplicaId replica = starts_.at(0).replica;
  EXPECT_THAT(*trial().constraints, IsEmpty());
  Report(replica, 1, 3);
  EXPECT_THAT(*trial().constraints, ElementsAre(IsNan(), IsNan()));
  EXPECT_FALSE(Breaks(study().spec, trial())) << "it may still tell them";
  EXPECT_EQ(Best(), std::nullopt) << "whether it keeps to them is not known";
  Report(replica, 2, 2, {{"latency_ms", 25}});
  EXPECT_THAT(*trial().constraints, ElementsAre(5, IsNan()));
  EXPECT_TRUE(Breaks(study().spec, trial()));
  Report(replica, 3, 1, {{"latency_ms", 15}, {"accuracy", 0.75}});
  EXPECT_THAT(*trial().constraints, ElementsAre(-5, -0.25));
  EXPECT_EQ(Best(), 0);
  Report(replica, 4, 0.5, {{"accuracy", 0.25}});
  EXPECT_THAT(*trial().constraints, ElementsAre(-5, 0.25));
  EXPECT_EQ(Best(), std::nullopt);
  Exit(replica);
  EXPECT_EQ(trial().state, TrialState::kComplete);
  EXPECT_EQ(trial().reason, "ran to its end and breaks accuracy >= 0.5 (it is 0.25)");
  EXPECT_EQ(study().state, StudyState::kComplete);
}

TEST_F(Constraints, SamplersKnowWhetherTrialsTellOfAny) {
  ASSERT_EQ(Refused(Within20(1)), "");
  Join(1);
  const ReplicaId replica = starts_.at(0).replica;
  const SamplerHistory::KnownTrials trials = {
      .parameters_of = [](const Trial& trial) { return &trial.parameters; },
      .held_by_pruner = [](const Trial&) { return false; }};
  SamplerHistory history;
  history.Update(core_.state(), study(), trials);
  EXPECT_FALSE(history.tells_of_constraints()) << "it runs";
  Report(replica, 1, 0.1, {{"latency_ms", 20.5}});
  Exit(replica);
  history.Update(core_.state(), study(), trials);
  EXPECT_TRUE(history.tells_of_constraints());
}

TEST_F(Constraints, OneThatBreaksIsNotTheBest) {
  ASSERT_EQ(Refused(Within20(2)), "");
  Join(2);
  const std::vector<StartReplicaCommand> starts = starts_;
  Report(starts.at(0).replica, 1, 0.1, {{"latency_ms", 20.5}});
  Report(starts.at(1).replica, 1, 0.2, {{"latency_ms", 20}});
  EXPECT_EQ(Best(), 1);
  Exit(starts[0].replica);
  EXPECT_EQ(Best(), 1);
  Exit(starts[1].replica);
  EXPECT_EQ(Best(), 1);
  EXPECT_EQ(core_.state().trials.at(starts[1].trial).reason, "ran to its end");
}

TEST_F(Constraints, AFigureThatIsNoNumberIsBroken) {
  ASSERT_EQ(Refused(Within20(1)), "");
  Join(1);
  const ReplicaId replica = starts_.at(0).replica;
  Report(replica, 1, 0.1, {{"latency_ms", NAN}});
  EXPECT_TRUE(Breaks(study().spec, trial()));
  Exit(replica);
  EXPECT_EQ(trial().reason, "ran to its end and breaks latency_ms <= 20 (it is nan)");
  EXPECT_EQ(Best(), std::nullopt);
}

TEST_F(Constraints, OneThatHasNeverToldAFigureHasFailed) {
  ASSERT_EQ(Refused(Within20(1)), "");
  Join(1);
  const ReplicaId replica = starts_.at(0).replica;
  Report(replica, 1, 0.1, {{"latency", 3}});
  Exit(replica);
  EXPECT_EQ(trial().state, TrialState::kFail);
  EXPECT_THAT(trial().reason,
              HasSubstr("has not told of \"latency_ms\", which \"constraints\" bounds"));
}

TEST_F(Constraints, OneThatBreaksReachesNoTarget) {
  StudySpec spec = Within20(2);
  spec.target = 0.5;
  ASSERT_EQ(Refused(spec), "");
  Join(1);
  const ReplicaId replica = starts_.at(0).replica;
  Report(replica, 1, 0.4);
  EXPECT_EQ(study().state, StudyState::kRunning) << "it has not told its figure";
  Report(replica, 2, 0.4, {{"latency_ms", 21}});
  EXPECT_EQ(study().state, StudyState::kRunning);
  Report(replica, 3, 0.4, {{"latency_ms", 19}});
  EXPECT_EQ(study().state, StudyState::kComplete);
}

TEST_F(Constraints, AnotherMetricMayBeBoundedAndTheFirstOneOfSeveral) {
  StudySpec spec = Within20(1);
  spec.other_metrics = {"latency_ms"};
  spec.directions = {Direction::kMinimize, Direction::kMinimize};
  spec.constraints.push_back({"loss", false, 1});
  ASSERT_EQ(Refused(spec), "");
  Join(1);
  const ReplicaId replica = starts_.at(0).replica;
  Report(replica, 1, 3, {{"latency_ms", 25}});
  EXPECT_THAT(*trial().constraints, ElementsAre(5, 2));
  Report(replica, 2, 0.5, {{"latency_ms", 15}});
  EXPECT_THAT(*trial().constraints, ElementsAre(-5, -0.5));
}

TEST_F(Constraints, TheSamplerIsTold) {
  StudySpec spec = Within20(12);
  spec.sampler = {"tpe", {{"startup_trials", 2.0}}};
  spec.max_concurrent_trials = 1;
  // The loss falls with x, and what is above a half is too slow.
  const auto last_x_of = [&](bool constrained) {
    StudySpec own = spec;
    own.name = constrained ? "constrained" : "free";
    if (!constrained) own.constraints.clear();
    EXPECT_EQ(Refused(own), "");
    double last = 0;
    while (core_.state().FindStudy(own.name)->state == StudyState::kRunning) {
      if (starts_.empty()) Step(Tick{});
      const StartReplicaCommand start = starts_.at(0);
      const double x = std::get<double>(core_.state().trials.at(start.trial).parameters[0].value);
      Report(start.replica, 1, 1 - x, {{"latency_ms", 40 * x}});
      last = x;
      Exit(start.replica);
    }
    return last;
  };
  Join(1);
  EXPECT_GT(last_x_of(false), 0.6);
  EXPECT_LT(last_x_of(true), 0.6);
}

// Six trials at once, of which the last one is far behind the others, whose latency is given.
class BesideBroken : public Constraints {
 protected:
  std::string ReasonOfLast(const PluginSpec& pruner, double latency) {
    StudySpec spec = Within20(6);
    spec.pruner = pruner;
    spec.max_step = 40;
    EXPECT_EQ(Refused(spec), "");
    Join(6);
    const std::vector<StartReplicaCommand> starts = starts_;
    EXPECT_EQ(starts.size(), 6U);
    for (std::int64_t step = 1; step <= 12; ++step) {
      for (std::size_t i = 0; i < 6; ++i) {
        const bool last = i + 1 == starts.size();
        const double fall = 0.5 * std::pow(static_cast<double>(step), -0.8);
        const double value = (last ? 0.9 : 0.1 + 0.01 * static_cast<double>(i)) + fall;
        Report(starts[i].replica, step, value, {{"latency_ms", last ? 10 : latency}});
      }
    }
    return core_.state().trials.at(starts.back().trial).reason;
  }
};

TEST_F(BesideBroken, ATrialIsJudgedBesideThoseThatKeepToTheirConstraints) {
  EXPECT_THAT(ReasonOfLast({"promise", {}}, 10), HasSubstr("chance to end among the best"));
}

TEST_F(BesideBroken, ATrialIsNotJudgedBesideThoseThatBreakThem) {
  EXPECT_EQ(ReasonOfLast({"promise", {}}, 30), "");
}

TEST_F(BesideBroken, NorAtARung) {
  EXPECT_EQ(ReasonOfLast({"asha", {{"min_steps", 4.0}, {"eta", 2.0}}}, 30), "");
}

TEST_F(Constraints, OneThatBreaksIsNoCompleteTrialForPruners) {
  StudySpec spec = Within20(3);
  spec.pruner = {"median", {{"startup_trials", 1.0}}};
  ASSERT_EQ(Refused(spec), "");
  Join(1);
  const auto run = [&](double value, double latency) {
    if (starts_.empty()) Step(Tick{});
    const StartReplicaCommand start = starts_.at(0);
    Report(start.replica, 1, value, {{"latency_ms", latency}});
    if (!Ended(core_.state().trials.at(start.trial).state)) Exit(start.replica);
    return core_.state().trials.at(start.trial).state;
  };
  EXPECT_EQ(run(0.1, 30), TrialState::kComplete);
  EXPECT_EQ(run(0.5, 10), TrialState::kComplete) << "the only better one breaks a constraint";
  EXPECT_EQ(run(0.9, 10), TrialState::kPruned);
}

TEST_F(Constraints, WhatClientsTellOfThemCountsForNothing) {
  ASSERT_EQ(Refused(Within20(1)), "");
  Join(1);
  Report(starts_.at(0).replica, 1, 0.1, {{"latency_ms", 3}});
  Step(SetTrialAttribute{trial().id, true, "constraints", "[4]"});
  EXPECT_THAT(*trial().constraints, ElementsAre(-17));
  EXPECT_THAT(study().decisions.back().reason, HasSubstr("counts for nothing"));
}

}  // namespace
}  // namespace espalier
