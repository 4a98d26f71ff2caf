#include "tuner/core/studies/validate.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace espalier {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

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

std::string WhyNot(const std::vector<Parameters>& points, const Parameters& fixed) {
  StudySpec spec;
  spec.name = "s";
  spec.command = {"train"};
  spec.max_trials = 3;
  spec.space = *SearchSpace::FromJson(R"({"lr": {"_type": "loguniform", "_value": [0.001, 1]},
      "n": {"_type": "choice", "_value": [{"_name": "a"},
        {"_name": "b", "p": {"_type": "uniform", "_value": [0, 1]}}]}})");
  spec.points = points;
  spec.fixed = fixed;
  return std::string(Validate(spec).message());
}

TEST(Validate, HoldsPointsAndFixedParametersToTheSearchSpace) {
  EXPECT_EQ(WhyNot({{{"lr", 0.01}}, {{"n", std::string("b")}, {"n/b/p", 0.5}}, {}}, {}), "");
  EXPECT_EQ(WhyNot({}, {{"lr", 0.01}}), "");
  EXPECT_EQ(WhyNot({{}, {{"lrr", 0.01}}}, {}),
            "\"points[1]\": parameter \"lrr\" is not in the search space, did you mean \"lr\"?");
  EXPECT_EQ(
      WhyNot({{{"lr", 2.0}}}, {}),
      "\"points[0]\": parameter \"lr\" is 2, outside its search space: loguniform 0.001 to 1");
  EXPECT_EQ(WhyNot({}, {{"lr", 2.0}}),
            "\"fixed\": parameter \"lr\" is 2, outside its search space: loguniform 0.001 to 1");
  EXPECT_EQ(WhyNot({}, {{"n/b/p", 0.5}}),
            "\"fixed\": parameter \"n/b/p\" belongs to option \"b\" of \"n\", which is missing");
  EXPECT_EQ(WhyNot({}, {{"lr", 0.01}, {"n", std::string("a")}}),
            "\"fixed\": leaves no parameter to search");
  EXPECT_EQ(WhyNot({{{"lr", 0.02}}}, {{"lr", 0.01}}),
            "\"points[0]\": parameter \"lr\" is 0.02, and \"fixed\" holds it at 0.01");
  EXPECT_EQ(WhyNot({{}, {}, {}, {}}, {}), "\"points\": at most 3, as there are trials, got 4");
}

std::string WhyNoPrior(std::vector<Belief> prior, const std::string& sampler = "tpe",
                       Parameters fixed = {}) {
  StudySpec spec;
  spec.name = "s";
  spec.command = {"train"};
  spec.space = *SearchSpace::FromJson(R"({"lr": {"_type": "loguniform", "_value": [0.001, 1]},
      "n": {"_type": "choice", "_value": [{"_name": "a"},
        {"_name": "b", "p": {"_type": "uniform", "_value": [0, 1]}}]}})");
  spec.sampler = {sampler, {}};
  spec.prior = std::move(prior);
  spec.fixed = std::move(fixed);
  return std::string(Validate(spec).message());
}

TEST(Validate, HoldsAPriorToTheSearchSpace) {
  EXPECT_EQ(WhyNoPrior({{"lr", 0.01}, {"n/b/p", 0.5}}), "") << "of an option that may be chosen";
  EXPECT_EQ(WhyNoPrior({{"lrr", 0.01}}),
            "\"prior\": parameter \"lrr\" is not in the search space, did you mean \"lr\"?");
  EXPECT_EQ(WhyNoPrior({{"lr", 2.0}}),
            "\"prior\": parameter \"lr\" is 2, outside its search space: loguniform 0.001 to 1");
  EXPECT_EQ(WhyNoPrior({{"lr", std::numeric_limits<double>::quiet_NaN()}}),
            "\"prior\": parameter \"lr\" is nan, outside its search space: loguniform 0.001 to 1");
  EXPECT_EQ(WhyNoPrior({{"lr", 0.1, 1.0}}),
            "\"prior\": the confidence in \"lr\" must be 0.01 to 0.99, got 1");
  EXPECT_EQ(WhyNoPrior({{"lr", 0.1}, {"lr", 0.2}}), "\"prior\": parameter \"lr\" is given twice");
  EXPECT_EQ(WhyNoPrior({{"lr", 0.1}}, "tpe", {{"lr", 0.1}}),
            "\"prior\": parameter \"lr\" is held by \"fixed\"");
  EXPECT_EQ(WhyNoPrior({{"n/b/p", 0.5}}, "tpe", {{"n", std::string("a")}}),
            "\"prior\": parameter \"n/b/p\" is of an option that \"fixed\" leaves out");
}

TEST(Validate, NamesTheSamplersThatTakeAPrior) {
  for (const char* takes : {"tpe", "gp", "cmaes", "auto"}) {
    EXPECT_EQ(WhyNoPrior({{"lr", 0.01}}, takes), "") << takes;
  }
  for (const std::string refuses : {"random", "grid", "qmc", "nsga2", "nsga3"}) {
    EXPECT_THAT(WhyNoPrior({{"lr", 0.01}}, refuses),
                AllOf(StartsWith("\"prior\": the sampler \"" + refuses + "\" cannot use it: give "),
                      HasSubstr("\"tpe\""), HasSubstr("\"gp\""), HasSubstr("\"cmaes\""),
                      Not(HasSubstr("\"qmc\", "))));
  }
}

StudySpec WithConstraints(std::vector<Constraint> constraints, const std::string& sampler = "tpe") {
  StudySpec spec;
  spec.name = "s";
  spec.command = {"train"};
  spec.metric = "loss";
  spec.space = *SearchSpace::FromJson(R"({"lr": {"_type": "loguniform", "_value": [0.001, 1]}})");
  spec.sampler = {sampler, {}};
  spec.constraints = std::move(constraints);
  return spec;
}

std::string WhyNoConstraints(const StudySpec& spec) {
  const std::string why(Validate(spec).message());
  EXPECT_TRUE(why.empty() || why.starts_with("\"constraints\": ")) << why;
  return why.empty() ? "" : why.substr(std::string_view("\"constraints\": ").size());
}

TEST(Validate, HoldsConstraintsToWhatTrialsCanTell) {
  EXPECT_EQ(WhyNoConstraints(WithConstraints({{"a", false, 2}, {"a", true, 2}, {"b", true, 0}})),
            "");
  EXPECT_EQ(WhyNoConstraints(WithConstraints({{"a", false, 2}, {"b", true, 0}, {"a", false, 3}})),
            "\"a <= 2\" and \"a <= 3\" bound one figure on one side: leave one out");
  EXPECT_EQ(WhyNoConstraints(WithConstraints({{"a", false, 2}, {"a", true, 2.5}})),
            "no figure is \"a >= 2.5\" and \"a <= 2\"");
  EXPECT_THAT(
      WhyNoConstraints(WithConstraints({{"loss", false, 2}})),
      StartsWith("\"loss\" is the study's metric, and the best trial is best in it anyway"));
  StudySpec spec = WithConstraints({{"loss", false, 2}, {"size", false, 2}});
  spec.other_metrics = {"size"};
  spec.directions = {Direction::kMinimize, Direction::kMinimize};
  EXPECT_EQ(WhyNoConstraints(spec), "") << "a front may be wanted within bounds";
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(WhyNoConstraints(WithConstraints({{"a", false, infinity}})),
            "the name of a figure has 1 to 256 bytes and its bound is finite, got a <= inf");
  EXPECT_THAT(WhyNoConstraints(WithConstraints({{std::string(257, 'a'), false, 1}})),
              StartsWith("the name of a figure has 1 to 256 bytes"));
}

TEST(Validate, HoldsASamplersOptionsToTheObjectives) {
  StudySpec spec = WithConstraints({});
  spec.sampler = {"nsga3", {{"reference_points", OptionValue::OfRows({{1, 0, 0}, {0, 1, 1}})}}};
  spec.other_metrics = {"size"};
  spec.directions = {Direction::kMinimize, Direction::kMinimize};
  EXPECT_EQ(Validate(spec).message(),
            "\"sampler\": option \"reference_points\" has points of 3 numbers, and there are 2 "
            "objectives");
  spec.other_metrics.emplace_back("latency");
  spec.directions.push_back(Direction::kMaximize);
  EXPECT_TRUE(Validate(spec).ok()) << Validate(spec);
}

TEST(Validate, RefusesConstraintsOfStudiesWhoseTrialsTellNoFigures) {
  const StudySpec spec = WithConstraints({{"a", false, 2}});
  StudySpec other = spec;
  other.kind = StudyKind::kByClients;
  EXPECT_THAT(WhyNoConstraints(other), HasSubstr("as attributes \"constraints:NAME\""));
  other = spec;
  other.kind = StudyKind::kQueued;
  other.sampler = {kQueueSampler, {}};
  EXPECT_EQ(WhyNoConstraints(other), "");
  other = spec;
  other.has_metric = false;
  EXPECT_THAT(WhyNoConstraints(other), StartsWith("need a \"metric\""));
  other = spec;
  other.from_files = {"runs", "", "", "loss"};
  EXPECT_THAT(WhyNoConstraints(other), HasSubstr("TensorBoard's events"));
  other = spec;
  other.launch = {"torchrun"};
  EXPECT_THAT(WhyNoConstraints(other),
              HasSubstr("\"launch\" starts \"torchrun\" on several slots"));
  other.max_slots = 1;
  EXPECT_EQ(WhyNoConstraints(other), "") << "one rank is one process";
}

TEST(Validate, NamesTheSamplersThatHeedConstraints) {
  for (const char* heeds : {"tpe", "gp", "nsga2", "nsga3", "random", "qmc"}) {
    EXPECT_EQ(WhyNoConstraints(WithConstraints({{"a", false, 2}}, heeds)), "") << heeds;
  }
  EXPECT_THAT(WhyNoConstraints(WithConstraints({{"a", false, 2}}, "cmaes")),
              AllOf(StartsWith("the sampler \"cmaes\" does not heed them: give "),
                    HasSubstr("\"tpe\""), HasSubstr("\"gp\""), Not(HasSubstr("\"queue\""))));
}

TEST(Validate, RefusesPointsOfAQueue) {
  StudySpec spec;
  spec.name = "s";
  spec.command = {"train"};
  spec.sampler = {kQueueSampler, {}};
  spec.kind = StudyKind::kQueued;
  spec.points = {{}};
  EXPECT_EQ(std::string(Validate(spec).message()),
            "\"points\": has no place beside the sampler \"queue\", whose trials clients enqueue "
            "whole");
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
