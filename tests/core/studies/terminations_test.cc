#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/core_fixture.h"
#include "tuner/core/studies/validate.h"

namespace espalier {
namespace {

using testing::HasSubstr;

class TerminatedStudies : public CoreTest {
 protected:
  // Ends after two complete trials that bring nothing better.
  StudySpec Stagnating(std::int64_t trials) {
    StudySpec spec = Spec(trials);
    spec.terminator = {"stagnation", {{"trials", 1}, {"min_trials", 1}}};
    return spec;
  }
  void Tell(TrialId id, double value) {
    ASSERT_TRUE(Step(TellValue{id, 1, value, /*final=*/true}).status.ok());
  }
};

TEST_F(TerminatedStudies, AStudyOfThePoolEndsWithItsTrials) {
  Step(CreateStudy{Stagnating(8), false});
  Join(4);
  const std::vector<StartReplicaCommand> starts = starts_;
  ASSERT_EQ(starts.size(), 4u);
  Tell(starts[0].trial, 0.5);
  Tell(starts[1].trial, 0.6);
  EXPECT_EQ(study().state, StudyState::kRunning);
  Tell(starts[2].trial, 0.7);
  EXPECT_EQ(study().state, StudyState::kComplete);
  EXPECT_EQ(study().reason,
            "stagnation: 2 complete trials have brought nothing better than 0.5, of trial 0");
  EXPECT_EQ(trial(4).state, TrialState::kPruned);
  EXPECT_THAT(trial(4).reason, HasSubstr("the study ended: stagnation: "));
}

TEST_F(TerminatedStudies, AStudyOfClientsEnds) {
  StudySpec spec = Stagnating(0);
  spec.kind = StudyKind::kByClients;
  spec.command.clear();
  Step(CreateStudy{spec, false});
  for (const double value : {0.5, 0.4, 0.6, 0.7}) {
    EXPECT_EQ(study().state, StudyState::kRunning);
    const TrialId id = Step(AskTrial{"s", {}, {}}).trial();
    ASSERT_TRUE(Step(TellEnd{id, TrialState::kComplete, {value}}).status.ok());
  }
  EXPECT_EQ(study().state, StudyState::kComplete);
  EXPECT_THAT(study().reason, HasSubstr("nothing better than 0.4, of trial 1"));
}

TEST(Validate, TakesATerminatorWhereThereIsOneMetric) {
  StudySpec spec;
  spec.name = "s";
  spec.kind = StudyKind::kByClients;
  spec.space = *SearchSpace::FromJson(R"({"x": {"_type": "uniform", "_value": [0, 1]}})");
  spec.terminator = {"stagnation", {}};
  EXPECT_TRUE(Validate(spec).ok()) << Validate(spec);
  spec.terminator = {"stagnation", {{"trials", -1}}};
  EXPECT_EQ(
      std::string(Validate(spec).message()),
      "\"terminator\": terminator \"stagnation\": option \"trials\" needs a whole number >= 0, "
      "got -1");
  spec.terminator = {"stagnation", {}};
  spec.sampler = {"random", {}};
  spec.directions = {Direction::kMinimize, Direction::kMaximize};
  EXPECT_EQ(std::string(Validate(spec).message()),
            "\"terminator\": \"stagnation\" goes by the values of one metric, and there are 2 "
            "directions");
  spec.directions = {Direction::kMinimize};
  spec.has_metric = false;
  EXPECT_EQ(
      std::string(Validate(spec).message()),
      "\"terminator\": \"stagnation\" goes by the values of one metric, and there is no metric");
}

TEST(Validate, TakesInstancesForStepsOnlyWhereStepsAreThoseOfTrials) {
  StudySpec spec;
  spec.name = "s";
  spec.command = {"train"};
  spec.space = *SearchSpace::FromJson(R"({"x": {"_type": "uniform", "_value": [0, 1]}})");
  spec.pruner = {"wilcoxon", {}};
  EXPECT_TRUE(Validate(spec).ok()) << Validate(spec);
  spec.batch_mode = BatchMode::kAdaptive;
  EXPECT_EQ(std::string(Validate(spec).message()),
            "\"pruner\": \"wilcoxon\" compares trials instance by instance, which needs "
            "\"batch_mode\": \"fixed\"");
}

// The trial of the number 2 is tried on the last instance first.
TEST_F(TerminatedStudies, InstancesComeInAnyOrderOfSteps) {
  StudySpec spec = Spec(2);
  spec.kind = StudyKind::kByClients;
  spec.command.clear();
  spec.max_step = 5;
  spec.pruner = {"wilcoxon", {}};
  Step(CreateStudy{spec, false});
  const TrialId best = Step(AskTrial{"s", {}, {}}).trial();
  for (std::int64_t i = 1; i <= 5; ++i) Step(ReportValue{best, i, 0.1 * static_cast<double>(i)});
  Step(TellEnd{best, TrialState::kComplete, {0.3}});
  const TrialId other = Step(AskTrial{"s", {}, {}}).trial();
  for (const std::int64_t i : {5, 2, 4}) {
    Step(ReportValue{other, i, 0.11 * static_cast<double>(i) + 0.1});
    EXPECT_EQ(core_.Verdict(other).action, PruneAction::kKeep);
  }
  Step(ReportValue{other, 1, 0.9});
  EXPECT_THAT(core_.Verdict(other).reason,
              HasSubstr("wilcoxon: on 4 instances worse than trial 0"));
}

}  // namespace
}  // namespace espalier
