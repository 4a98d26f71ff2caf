#include "tuner/core/studies/validate.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace espalier {
namespace {

using testing::ElementsAre;

// As releases kept them that took fractions for whatever counts.
Study Kept(std::int64_t id, StudyState state) {
  Study study;
  study.id = StudyId(id);
  study.state = state;
  study.spec.name = absl::StrCat("study_", id);
  study.spec.command = {"train"};
  study.spec.sampler = {"tpe", {{"startup_trials", 5.5}}};
  study.spec.policy = {"pollux", {{"generations", 10.5}, {"fairness", 0.5}}};
  return study;
}

TEST(Validate, RefusesParametersOfOneVariableWhereThePoolRunsTheTrials) {
  StudySpec spec;
  spec.name = "s";
  spec.command = {"train"};
  spec.space = *SearchSpace::FromJson(R"({"x-y": {"_type": "uniform", "_value": [0, 1]},
                                          "x_y": {"_type": "uniform", "_value": [0, 1]}})");
  EXPECT_EQ(std::string(Validate(spec).message()),
            "\"search_space\": \"x-y\" and \"x_y\" would both be ESPALIER_PARAM_X_Y: rename one");
  spec.kind = StudyKind::kByClients;
  EXPECT_TRUE(Validate(spec).ok()) << "clients get their parameters by name";
}

TEST(Validate, RefusesSeveralTrialsOfAJobWithoutParameters) {
  StudySpec spec;
  spec.name = "s";
  spec.command = {"train"};
  spec.has_metric = false;
  for (const std::int64_t trials : {0, 1}) {
    spec.max_trials = trials;
    EXPECT_TRUE(Validate(spec).ok()) << trials;
  }
  spec.max_trials = 3;
  EXPECT_EQ(std::string(Validate(spec).message()),
            "\"trials\": without parameters in \"search_space\" there is one trial to run, got 3");
}

TEST(CutFractions, LeavesOptionsThatTheirPluginsTake) {
  TunerState state;
  state.studies.emplace(StudyId(1), Kept(1, StudyState::kRunning));
  state.studies.emplace(StudyId(2), Kept(2, StudyState::kComplete));
  state.policy = PluginSpec{"pollux", {{"population", 12.75}, {"seed", 3}}};

  EXPECT_THAT(
      CutFractions(state),
      ElementsAre(
          "study \"study_1\": sampler \"tpe\": option \"startup_trials\" takes whole numbers, 5.5 "
          "counts as 5",
          "study \"study_1\": policy \"pollux\": option \"generations\" takes whole numbers, 10.5 "
          "counts as 10",
          "the pool: policy \"pollux\": option \"population\" takes whole numbers, 12.75 counts as "
          "12"))
      << "of a study that has ended nobody needs to know";
  for (const auto& [id, study] : state.studies) {
    EXPECT_EQ(study.spec.policy.options, (Options{{"generations", 10}, {"fairness", 0.5}}));
    EXPECT_EQ(study.spec.sampler.options, (Options{{"startup_trials", 5}}));
  }
  EXPECT_EQ(state.policy->options, (Options{{"population", 12}, {"seed", 3}}));
  EXPECT_TRUE(CutFractions(state).empty());
}

TEST(CutFractions, LeavesWhatIsWrongOtherwiseToItsOwnRefusal) {
  TunerState state;
  state.policy = PluginSpec{"pollux", {{"generations", 0.5}}};  // 0 is too few
  EXPECT_TRUE(CutFractions(state).empty());
  state.policy = PluginSpec{"no_such_policy", {{"generations", 10.5}}};
  EXPECT_TRUE(CutFractions(state).empty());
}

}  // namespace
}  // namespace espalier
