#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>

#include "absl/strings/str_cat.h"
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

// Of trials that clients run, parameters are what was suggested to them.
class ModelledStudies : public TerminatedStudies {
 protected:
  StudySpec OfClients(const PluginSpec& terminator) {
    StudySpec spec = Spec(0);
    spec.kind = StudyKind::kByClients;
    spec.command.clear();
    spec.terminator = terminator;
    return spec;
  }
  TrialId Ask() { return Step(AskTrial{"s", {}, {}}).trial(); }
  void TellEnd(TrialId id, double value) {
    ASSERT_TRUE(Step(espalier::TellEnd{id, TrialState::kComplete, {value}}).status.ok());
  }
  // How often the study's record has this.
  std::ptrdiff_t Recorded(const std::string& words) {
    return std::ranges::count_if(study().decisions, [&words](const Decision& decision) {
      return decision.reason.find(words) != std::string::npos;
    });
  }
};

TEST_F(ModelledStudies, OfClientsEndByWhatWasSuggestedToTrials) {
  Step(CreateStudy{OfClients({"regret", {{"error", 1e6}, {"min_trials", 4}}}), false});
  for (const double value : {0.5, 0.4, 0.6, 0.7}) {
    EXPECT_EQ(study().state, StudyState::kRunning);
    TellEnd(Ask(), value);
  }
  EXPECT_EQ(study().state, StudyState::kComplete);
  EXPECT_THAT(study().reason, HasSubstr("regret: after 4 complete trials 0.4, of trial 1, can be"));
  EXPECT_EQ(Recorded("regret: after 4 complete trials"), 1) << "the decision to end the study";
}

TEST_F(ModelledStudies, GoByTheScoresThatOptunasProgramsReport) {
  Step(CreateStudy{OfClients({"regret", {{"min_trials", 3}}}), false});
  for (const double value : {0.5, 0.6, 0.7, 0.8}) TellEnd(Ask(), value);
  EXPECT_EQ(study().state, StudyState::kRunning);
  EXPECT_EQ(Recorded("regret: the best trial has told no standard error"), 1);
  const TrialId best = Ask();
  ASSERT_TRUE(
      Step(SetTrialAttribute{best, true, "terminator:cv_scores", "[1e6, -1e6, 0]"}).status.ok());
  TellEnd(best, 0.1);
  EXPECT_EQ(study().state, StudyState::kComplete);
  EXPECT_THAT(study().reason, HasSubstr("less than its standard error of 7.45e+05"));
}

TEST_F(ModelledStudies, OfThePoolGoByTheFigureStandardError) {
  StudySpec spec = Spec(8);
  spec.terminator = {"regret", {{"min_trials", 2}}};
  Step(CreateStudy{spec, false});
  Join(4);
  const std::vector<StartReplicaCommand> starts = starts_;
  const auto tell = [&](std::size_t i, double value, const std::map<std::string, double>& extra) {
    ASSERT_TRUE(Step(TellValue{starts[i].trial, 1, value, /*final=*/true, {}, extra}).status.ok());
  };
  tell(0, 0.5, {});
  tell(1, 0.6, {{"standard_error", 1e6}});
  EXPECT_EQ(study().state, StudyState::kRunning) << "the best has told none";
  tell(2, 0.4, {{"standard_error", 1e6}});
  EXPECT_EQ(study().state, StudyState::kComplete);
  EXPECT_THAT(study().reason, HasSubstr("less than its standard error of 1e+06"));
}

TEST_F(ModelledStudies, EndAlikeAfterARestart) {
  Step(CreateStudy{OfClients({"regret", {{"min_trials", 2}}}), false});
  Core* core = &core_;
  std::unique_ptr<Core> restarted;
  for (int n = 0; n < 12; ++n) {
    if (n == 6) {
      restarted = std::make_unique<Core>(TunerState(core->state()), CoreOptions{});
      core = restarted.get();
    }
    const auto step = [&](const Event& event) {
      now_ = After(now_, 0.01);
      return core->Step(now_, event).reply;
    };
    const TrialId id = step(AskTrial{"s", {}, {}}).trial();
    step(SetTrialAttribute{id, true, "terminator:cv_scores", n < 9 ? "[]" : "[0, 1e6]"});
    step(espalier::TellEnd{id, TrialState::kComplete, {1.0 / (n + 1)}});
    const Study& seen = core->state().studies.begin()->second;
    EXPECT_EQ(seen.state, n < 9 ? StudyState::kRunning : StudyState::kComplete) << n;
    const auto told = std::ranges::count_if(seen.decisions, [](const Decision& decision) {
      return decision.reason.find("has told no standard error") != std::string::npos;
    });
    EXPECT_EQ(told, n < 1 ? 0 : 1) << n;
    if (seen.state != StudyState::kRunning) break;
  }
}

TEST(Validate, TakesAModelWhereThereIsSomethingToSearch) {
  StudySpec spec;
  spec.name = "s";
  spec.kind = StudyKind::kByClients;
  for (const char* name : {"regret", "emmr"}) {
    spec.terminator = {name, {}};
    EXPECT_EQ(std::string(Validate(spec).message()),
              absl::StrCat("\"terminator\": \"", name,
                           "\" goes by a model of the values over "
                           "\"search_space\", which needs a parameter with more than one value"));
  }
  spec.space = *SearchSpace::FromJson(R"({"x": {"_type": "uniform", "_value": [0, 1]}})");
  EXPECT_TRUE(Validate(spec).ok()) << Validate(spec);
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
