#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/core/core_fixture.h"
#include "tuner/core/state/refusals.h"

namespace espalier {
namespace {

using testing::HasSubstr;

// A core with one study whose clients ask for trials and tell of them.
class Telling : public CoreTest {
 protected:
  void Create(const PluginSpec& pruner = {"none", {}}, std::optional<double> target = {},
              std::int64_t max_step = 0) {
    StudySpec spec;
    spec.name = "told";
    spec.kind = StudyKind::kByClients;
    spec.space = *SearchSpace::FromJson(R"({"x": {"_type": "uniform", "_value": [0, 1]}})");
    spec.pruner = pruner;
    spec.target = target;
    spec.max_step = max_step;
    ASSERT_TRUE(Step(CreateStudy{spec, false}).status.ok());
  }
  TrialId Ask() { return Step(AskTrial{"told", {}, {}}).trial(); }
  absl::Status Report(TrialId id, double value, std::optional<std::int64_t> step = {}) {
    return Step(ReportValue{id, step, value}).status;
  }
  absl::Status Tell(TrialId id, TrialState state, std::vector<double> values = {}) {
    return Step(TellEnd{id, state, std::move(values)}).status;
  }
  const Trial& At(TrialId id) { return core_.state().trials.at(id); }
};

TEST_F(Telling, ReportsAreOrderedByStepAndTheFirstOfAStepStands) {
  Create();
  const TrialId id = Ask();
  ASSERT_TRUE(Report(id, 3, 5).ok());
  ASSERT_TRUE(Report(id, 2).ok());
  EXPECT_EQ(Step(ReportValue{id, 5, 3}).note(), "");
  EXPECT_EQ(Step(ReportValue{id, 5, 9}).note(),
            "step 5 was already told as 3; this value is ignored");
  EXPECT_EQ(Step(TellValue{id, 5, std::nan("")}).note(),
            "step 5 was already told as 3; this value is ignored");
  ASSERT_EQ(At(id).values.size(), 2u);
  EXPECT_EQ(At(id).values[0].value, 3);
  EXPECT_EQ(At(id).values[1].step, 6);
  ASSERT_TRUE(Step(SetIntermediateValue{id, 5, 9}).status.ok());
  EXPECT_EQ(At(id).values[0].value, 9) << "as in a storage of Optuna's";
  EXPECT_TRUE(absl::IsInvalidArgument(Report(id, 1, -1)));
}

TEST_F(Telling, AValueThatIsToldAgainWithItsStepIsNoNewOne) {
  Create();
  const TrialId id = Ask();
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(Report(id, 0.5, 1).ok());
    ASSERT_TRUE(Step(TellValue{id, 2, 0.25}).status.ok());
  }
  EXPECT_EQ(At(id).values.size(), 2u);
  ASSERT_TRUE(Report(id, 0.25).ok());
  ASSERT_TRUE(Report(id, 0.25).ok());
  EXPECT_EQ(At(id).values.back().step, 4) << "each one without a step comes after the last";
}

TEST_F(Telling, AStepHasALargestOne) {
  Create();
  const TrialId id = Ask();
  const auto tell = [&](std::optional<std::int64_t> step) {
    return Step(TellValue{id, step, 3}).status;
  };
  for (const std::int64_t beyond : {kMaxStep + 1, std::numeric_limits<std::int64_t>::max()}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Report(id, 3, beyond)));
    EXPECT_TRUE(absl::IsInvalidArgument(tell(beyond)));
  }
  ASSERT_TRUE(Report(id, 3, kMaxStep).ok());
  EXPECT_THAT(std::string(Report(id, 3).message()),
              HasSubstr("step must be from 0 to 9007199254740992, got 9007199254740993"));
  EXPECT_TRUE(absl::IsInvalidArgument(tell({})));
  ASSERT_EQ(At(id).values.size(), 1u);
  // As Optuna's clients may.
  Step(SetIntermediateValue{id, std::numeric_limits<std::int64_t>::max(), 3});
  EXPECT_TRUE(absl::IsInvalidArgument(Report(id, 3)));
  EXPECT_TRUE(absl::IsInvalidArgument(tell({})));
}

TEST_F(Telling, OnlyRunningTrialsReportAndEnd) {
  Create();
  const TrialId waiting = Step(EnqueueTrial{"told", {}, {}, {}}).trial();
  EXPECT_THAT(std::string(Report(waiting, 1).message()), HasSubstr("is WAITING, not RUNNING"));
  EXPECT_TRUE(absl::IsFailedPrecondition(Tell(waiting, TrialState::kFail)));
  EXPECT_TRUE(absl::IsNotFound(Report(TrialId(99), 1)));
  EXPECT_TRUE(absl::IsNotFound(Tell(TrialId(99), TrialState::kFail)));
  const TrialId id = Ask();
  ASSERT_TRUE(Tell(id, TrialState::kFail).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(Report(id, 1)));
}

TEST_F(Telling, TheSameEndMayBeToldAgainAndNoOther) {
  Create();
  const TrialId id = Ask();
  ASSERT_TRUE(Tell(id, TrialState::kComplete, {0.5}).ok());
  const Trial before = At(id);
  EXPECT_TRUE(Tell(id, TrialState::kComplete, {0.5}).ok());
  EXPECT_EQ(At(id), before);
  EXPECT_THAT(std::string(Tell(id, TrialState::kComplete, {0.6}).message()),
              HasSubstr("COMPLETE with [0.5]"));
  EXPECT_TRUE(absl::IsFailedPrecondition(Tell(id, TrialState::kFail)));
  EXPECT_EQ(At(id), before);
}

TEST_F(Telling, APrunedTrialEndsWithItsLastValue) {
  Create();
  const TrialId id = Ask();
  EXPECT_TRUE(Report(id, 4).ok());
  EXPECT_TRUE(Report(id, 3).ok());
  ASSERT_TRUE(Tell(id, TrialState::kPruned).ok());
  EXPECT_EQ(At(id).value, 3);
  EXPECT_TRUE(Tell(id, TrialState::kPruned).ok()) << "told again";
  const TrialId nothing = Ask();
  ASSERT_TRUE(Tell(nothing, TrialState::kPruned).ok());
  EXPECT_FALSE(At(nothing).value);
}

TEST_F(Telling, AnEndHasTheValuesThatItNeeds) {
  Create();
  const TrialId id = Ask();
  for (const std::vector<double>& values : {std::vector<double>{}, {1, 2}, {std::nan("")}}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Tell(id, TrialState::kComplete, values)));
  }
  EXPECT_TRUE(absl::IsInvalidArgument(Tell(id, TrialState::kFail, {1})));
  EXPECT_TRUE(absl::IsInvalidArgument(Tell(id, TrialState::kRunning)));
  EXPECT_EQ(At(id).state, TrialState::kRunning);
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(Tell(id, TrialState::kComplete, {infinity}).ok());
  EXPECT_EQ(At(id).value, infinity);
}

TEST_F(Telling, ThePrunerJudgesWithoutEndingTheTrial) {
  Create({"median", {{"startup_trials", 2}}});
  for (int i = 0; i < 2; ++i) {
    const TrialId id = Ask();
    EXPECT_TRUE(Report(id, 1).ok());
    EXPECT_NE(core_.Verdict(id).action, PruneAction::kPrune);
    EXPECT_TRUE(Tell(id, TrialState::kComplete, {1}).ok());
  }
  const TrialId bad = Ask();
  EXPECT_TRUE(Report(bad, 5).ok());
  const PruneVerdict verdict = core_.Verdict(bad);
  EXPECT_EQ(verdict.action, PruneAction::kPrune);
  EXPECT_THAT(verdict.reason, HasSubstr("median: 5"));
  EXPECT_EQ(At(bad).state, TrialState::kRunning) << "its client ends it, or does not";
  EXPECT_TRUE(Report(bad, 0.5).ok());
  EXPECT_NE(core_.Verdict(bad).action, PruneAction::kPrune);
  const TrialId good = Ask();
  EXPECT_TRUE(Report(good, 0.5).ok());
  EXPECT_NE(core_.Verdict(good).action, PruneAction::kPrune);
  EXPECT_EQ(core_.Verdict(good).reason, "");
}

TEST_F(Telling, ATrialAtItsLastStepIsNotPruned) {
  Create({"median", {{"startup_trials", 2}}}, {}, /*max_step=*/2);
  for (int i = 0; i < 2; ++i) {
    const TrialId id = Ask();
    EXPECT_TRUE(Report(id, 1, 1).ok());
    EXPECT_TRUE(Report(id, 1, 2).ok());
    EXPECT_TRUE(Tell(id, TrialState::kComplete, {1}).ok());
  }
  const TrialId bad = Ask();
  EXPECT_TRUE(Report(bad, 5, 1).ok());
  EXPECT_EQ(core_.Verdict(bad).action, PruneAction::kPrune);
  EXPECT_TRUE(Report(bad, 5, 2).ok());
  EXPECT_EQ(core_.Verdict(bad).action, PruneAction::kKeep) << "it has nothing left to do";
}

TEST_F(Telling, APauseIsAnEndForWhoCannotPause) {
  Create({"asha_promote", {{"min_steps", 1}, {"eta", 2}}});
  for (int i = 0; i < 4; ++i) {
    const TrialId id = Ask();
    EXPECT_TRUE(Report(id, 1).ok());
    EXPECT_TRUE(Tell(id, TrialState::kComplete, {1}).ok());
  }
  const TrialId bad = Ask();
  EXPECT_TRUE(Report(bad, 9).ok());
  EXPECT_EQ(core_.Verdict(bad).action, PruneAction::kPrune);
}

TEST_F(Telling, TrialsOfStoppedStudiesShouldEnd) {
  Create();
  const TrialId id = Ask();
  EXPECT_NE(core_.Verdict(id).action, PruneAction::kPrune);
  Step(StopStudy{"told"});
  EXPECT_THAT(core_.Verdict(id).reason, HasSubstr("STOPPED"));
  EXPECT_TRUE(Report(id, 1).ok()) << "what was done is not lost";
  EXPECT_TRUE(Tell(id, TrialState::kComplete, {1}).ok());
  EXPECT_EQ(core_.Verdict(id).action, PruneAction::kPrune) << "it has ended";
}

TEST_F(Telling, TheTargetEndsTheStudy) {
  Create({"none", {}}, 0.1);
  const TrialId running = Ask();
  const TrialId id = Ask();
  EXPECT_TRUE(Report(id, 0.2).ok());
  EXPECT_EQ(study().state, StudyState::kRunning);
  EXPECT_TRUE(Report(id, 0.1).ok());
  EXPECT_EQ(study().state, StudyState::kComplete);
  EXPECT_THAT(core_.Verdict(running).reason, HasSubstr("reached the target 0.1"));
  EXPECT_TRUE(Tell(id, TrialState::kComplete, {0.1}).ok());
  EXPECT_TRUE(Tell(running, TrialState::kPruned).ok());
}

TEST_F(Telling, AttributesAreSetTogetherWhileTheTrialIsOpen) {
  Create();
  const TrialId id = Ask();
  Step(SetTrialAttributes{id, {{{"a", "1"}}, {{"b", "2"}}}});
  Step(SetTrialAttributes{id, {{{"c", "3"}}, {}}});
  EXPECT_EQ(At(id).attributes.user, (std::map<std::string, std::string>{{"a", "1"}, {"c", "3"}}));
  EXPECT_EQ(At(id).attributes.system.at("b"), "2");
  EXPECT_TRUE(Tell(id, TrialState::kFail).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(Step(SetTrialAttributes{id, {}}).status));
}

TEST_F(Telling, WhatDoesNotCountIsAnswered) {
  Step(CreateStudy{Spec(2), false});
  Join(1);
  const TrialId id = starts_.at(0).trial;
  const auto note = [&](std::optional<std::int64_t> step, double value, bool final = false) {
    const Reply reply = Step(TellValue{id, step, value, final});
    EXPECT_TRUE(reply.status.ok()) << reply.status;
    return reply.note();
  };
  EXPECT_EQ(note(1, 0.5), "");
  EXPECT_EQ(note(1, 0.5), "") << "told again";
  EXPECT_EQ(note(1, 0.7), "step 1 was already told as 0.5; this value is ignored");
  EXPECT_EQ(At(id).values.front().value, 0.5);
  EXPECT_EQ(note(1, 0.25, true),
            "step 1 was already told as 0.5 and stays so; the trial's final value is the one told "
            "now");
  EXPECT_EQ(At(id).value, 0.25);
  EXPECT_EQ(note({}, 0.25, true), "") << "told again";
  EXPECT_EQ(note({}, 0.2, true), "trial 0 has ended as COMPLETE: this value is ignored");
  EXPECT_EQ(note(1, 0.5), "");
  EXPECT_EQ(note(2, 0.5), "trial 0 has ended as COMPLETE: this value is ignored");
}

TEST_F(Telling, AFinalValueThatIsNoFiniteNumberFailsATrialOfThePool) {
  Step(CreateStudy{Spec(2), false});
  Join(2);
  const std::vector<StartReplicaCommand> starts = starts_;
  ASSERT_EQ(starts.size(), 2u);
  const double values[] = {std::nan(""), -std::numeric_limits<double>::infinity()};
  const char* const reasons[] = {"told nan as its final value, which must be a finite number",
                                 "told -inf as its final value, which must be a finite number"};
  for (std::size_t i = 0; i < 2; ++i) {
    const TrialId id = starts[i].trial;
    EXPECT_EQ(Step(TellValue{id, 1, std::nan("")}).note(), "") << "on the way it may be";
    const Reply reply = Step(TellValue{id, 2, values[i], true});
    EXPECT_EQ(At(id).state, TrialState::kFail);
    EXPECT_FALSE(At(id).value);
    EXPECT_EQ(At(id).reason, reasons[i]);
    EXPECT_THAT(reply.note(), HasSubstr("has failed: told "));
  }
}

class FinalValues : public Telling, public ::testing::WithParamInterface<PluginSpec> {};

// Each pruner would end all trials but the first.
TEST_P(FinalValues, AreNotJudged) {
  StudySpec spec = Spec(4);
  spec.pruner = GetParam();
  Step(CreateStudy{spec, false});
  Join(4);
  const std::vector<StartReplicaCommand> starts = starts_;
  ASSERT_EQ(starts.size(), 4u);
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const TrialId id = starts[i].trial;
    const double value = 1.0 + static_cast<double>(i);
    if (i == 3) {
      EXPECT_TRUE(Step(TellValue{id, 1, value}).should_stop()) << "it is no end";
    } else {
      EXPECT_EQ(Step(TellValue{id, 1, value, true}).note(), "");
      EXPECT_EQ(At(id).state, TrialState::kComplete) << At(id).reason;
      EXPECT_EQ(At(id).value, value);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, FinalValues,
                         ::testing::Values(PluginSpec{"asha", {}}, PluginSpec{"hyperband", {}},
                                           PluginSpec{"asha_promote", {}},
                                           PluginSpec{"median", {{"startup_trials", 1}}}),
                         [](const auto& row) { return row.param.name; });

TEST_F(Telling, WhatIsNotFiniteIsNeverTheBest) {
  for (const Direction direction : {Direction::kMinimize, Direction::kMaximize}) {
    StudySpec spec = Spec(100);
    spec.name = direction == Direction::kMinimize ? "least" : "most";
    spec.kind = StudyKind::kByClients;
    spec.directions = {direction};
    spec.target = direction == Direction::kMinimize ? -5 : 5;
    ASSERT_TRUE(Step(CreateStudy{spec, false}).status.ok());
    const auto ask = [&] { return Step(AskTrial{spec.name, {}, {}}).trial(); };
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    for (const double value : {-kInfinity, kInfinity}) {
      const TrialId id = ask();
      ASSERT_TRUE(Report(id, value, 1).ok());
      ASSERT_TRUE(Tell(id, TrialState::kComplete, {value}).ok());
      const Study& study = core_.state().studies.at(At(id).study);
      EXPECT_EQ(study.state, StudyState::kRunning) << "it is no target reached";
      EXPECT_EQ(BestTrial(core_.state(), study), std::nullopt);
    }
    const TrialId pruned = ask();
    ASSERT_TRUE(Report(pruned, 3, 1).ok());
    ASSERT_TRUE(Tell(pruned, TrialState::kPruned).ok());
    const Study& study = core_.state().studies.at(At(pruned).study);
    EXPECT_EQ(BestTrial(core_.state(), study), 2);
    ASSERT_TRUE(Tell(ask(), TrialState::kComplete, {4}).ok());
    EXPECT_EQ(BestTrial(core_.state(), study), 3);
  }
}

TEST_F(Telling, AFinalValueIsCheckedAsAnEndIs) {
  Create();
  const TrialId id = Ask();
  EXPECT_TRUE(absl::IsInvalidArgument(Step(TellValue{id, {}, std::nan(""), true}).status));
  EXPECT_EQ(At(id).state, TrialState::kRunning);
}

TEST_F(Telling, TrialsOfThePoolEndCompleteOnly) {
  StudySpec spec = Spec(2);
  Step(CreateStudy{spec, false});
  Join(1);
  const TrialId id = starts_.at(0).trial;
  EXPECT_TRUE(Report(id, 0.5, 1).ok());
  EXPECT_TRUE(absl::IsPermissionDenied(Tell(id, TrialState::kFail)));
  EXPECT_TRUE(Tell(id, TrialState::kComplete, {0.25}).ok());
  EXPECT_EQ(At(id).state, TrialState::kComplete);
  EXPECT_EQ(At(id).value, 0.25);
  EXPECT_TRUE(Tell(id, TrialState::kComplete, {0.25}).ok()) << "told again";
}

}  // namespace
}  // namespace espalier
