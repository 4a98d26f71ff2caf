// Which sampler "auto" leaves a suggestion to.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

#include "tests/core/samplers/functions.h"
#include "tuner/core/samplers/prior.h"
#include "tuner/core/samplers/sampler.h"

namespace espalier {
namespace {

using testing::Box;

constexpr std::size_t kTrialsOfGp = 500;
constexpr std::size_t kTrialsOfGpBeforeCmaEs = 100;  // of five parameters or fewer
constexpr std::size_t kTrialsOfGpBeforeNsga2 = 200;

const SearchSpace& Numeric() {
  static const SearchSpace space = *SearchSpace::FromJson(
      R"json({"x": {"_type": "uniform", "_value": [0, 1]},
              "n": {"_type": "randint", "_value": [0, 9]},
              "lr": {"_type": "loguniform", "_value": [1e-4, 1]}})json");
  return space;
}

const SearchSpace& WithChoice() {
  static const SearchSpace space = *SearchSpace::FromJson(
      R"json({"x": {"_type": "uniform", "_value": [0, 1]},
              "c": {"_type": "choice", "_value": ["a", "b"]}})json");
  return space;
}

// A study of a space with so many trials that have ended, drawn at random.
class StudySoFar {
 public:
  StudySoFar(const SearchSpace& space, std::size_t trials) : space_(space) {
    Random random(1);
    while (ended_.size() < trials) {
      parameters_.push_back(space.Sample(random));
      const auto number = static_cast<std::int64_t>(ended_.size());
      ended_.push_back({.trial_number = number,
                        .parameters = &parameters_.back(),
                        .value = random.Uniform(),
                        .other_values = others_});
    }
  }

  void BreakConstraint() { ended_.back().constraints = broken_; }
  void PruneLast(std::size_t trials) {
    for (std::size_t i = ended_.size() - trials; i < ended_.size(); ++i) ended_[i].pruned = true;
  }
  void Start(std::size_t trials) { running_.resize(trials, &parameters_.back()); }

  SamplerInput Input(std::span<const Direction> other_directions = {}) const {
    return {.space = space_,
            .direction = Direction::kMinimize,
            .ended = ended_,
            .running = running_,
            .trial_number = static_cast<std::int64_t>(ended_.size() + running_.size()),
            .other_directions = other_directions};
  }

 private:
  const SearchSpace& space_;
  const std::vector<double> others_{0.5, 0.5};
  const std::vector<double> broken_{1.0};
  std::deque<Parameters> parameters_;  // a deque: the observations point into it
  std::vector<Observation> ended_;
  std::vector<const Parameters*> running_;
};

const Sampler& Auto() {
  static const std::unique_ptr<Sampler> sampler = *MakeSampler("auto", {});
  return *sampler;
}

std::string ChosenAfter(const SearchSpace& space, std::size_t trials) {
  const StudySoFar study(space, trials);
  return std::string(Auto().Chooses(study.Input()));
}

TEST(AutoSampler, LeavesTheFirstTrialsToTheGaussianProcess) {
  for (const SearchSpace& space : {Numeric(), WithChoice(), SearchSpace()}) {
    EXPECT_EQ(ChosenAfter(space, 0), "gp");
    EXPECT_EQ(ChosenAfter(space, kTrialsOfGpBeforeCmaEs - 1), "gp");
  }
}

TEST(AutoSampler, GoesOnByCmaEsWhereAllParametersAreNumbers) {
  EXPECT_EQ(ChosenAfter(Numeric(), kTrialsOfGpBeforeCmaEs), "cmaes");
  const SearchSpace ten = *SearchSpace::FromJson(Box(10, "[0, 1]"));
  EXPECT_EQ(ChosenAfter(ten, 199), "gp");
  EXPECT_EQ(ChosenAfter(ten, 200), "cmaes");
  const SearchSpace forty = *SearchSpace::FromJson(Box(40, "[0, 1]"));
  EXPECT_EQ(ChosenAfter(forty, 299), "gp");
  EXPECT_EQ(ChosenAfter(forty, 300), "cmaes");
}

TEST(AutoSampler, GoesOnByTpeWhereThereAreChoices) {
  EXPECT_EQ(ChosenAfter(WithChoice(), kTrialsOfGp - 1), "gp");
  EXPECT_EQ(ChosenAfter(WithChoice(), kTrialsOfGp), "tpe");
  const SearchSpace one_value =
      *SearchSpace::FromJson(R"json({"x": {"_type": "randint", "_value": [1, 2]}})json");
  EXPECT_EQ(ChosenAfter(one_value, kTrialsOfGp), "tpe");
}

TEST(AutoSampler, CountsTrialsThatRun) {
  StudySoFar study(Numeric(), kTrialsOfGpBeforeCmaEs - 3);
  study.Start(2);
  EXPECT_EQ(Auto().Chooses(study.Input()), "gp");
  study.Start(3);
  EXPECT_EQ(Auto().Chooses(study.Input()), "cmaes");
}

TEST(AutoSampler, GoesOnByNsga2WhereThereAreSeveralObjectives) {
  const std::vector<Direction> others = {Direction::kMinimize, Direction::kMaximize};
  for (const SearchSpace& space : {Numeric(), WithChoice()}) {
    const StudySoFar before(space, kTrialsOfGpBeforeNsga2 - 1);
    EXPECT_EQ(Auto().Chooses(before.Input(others)), "gp");
    const StudySoFar after(space, kTrialsOfGpBeforeNsga2);
    EXPECT_EQ(Auto().Chooses(after.Input(others)), "nsga2");
    const std::vector<ScoredTrial> of_another(1);
    SamplerInput like = after.Input(others);
    like.before = of_another;
    EXPECT_EQ(Auto().Chooses(like), "tpe");
  }
}

TEST(AutoSampler, OfSeveralObjectivesCountsNoTrialThatWasPruned) {
  StudySoFar study(Numeric(), kTrialsOfGpBeforeNsga2 + 10);
  const std::vector<Direction> other = {Direction::kMinimize};
  study.PruneLast(10);
  EXPECT_EQ(Auto().Chooses(study.Input(other)), "nsga2");
  study.PruneLast(11);
  EXPECT_EQ(Auto().Chooses(study.Input(other)), "gp");
  StudySoFar of_one(Numeric(), kTrialsOfGpBeforeCmaEs);
  of_one.PruneLast(11);
  EXPECT_EQ(Auto().Chooses(of_one.Input()), "cmaes");
}

TEST(AutoSampler, LeavesConstraintsToSamplersThatTakeThem) {
  StudySoFar study(Numeric(), kTrialsOfGp);
  study.BreakConstraint();
  EXPECT_EQ(Auto().Chooses(study.Input()), "tpe");
}

// Who asks knows whether trials tell of any, and need not have all of them looked through.
TEST(AutoSampler, BelievesWhatItIsToldOfConstraints) {
  StudySoFar study(Numeric(), kTrialsOfGp);
  SamplerInput input = study.Input();
  input.tells_of_constraints = true;
  EXPECT_EQ(Auto().Chooses(input), "tpe");
  study.BreakConstraint();
  input.tells_of_constraints = false;
  EXPECT_EQ(Auto().Chooses(input), "cmaes");
}

TEST(AutoSampler, LeavesNoSuggestionToTheGaussianProcessThatTakesItLong) {
  const SearchSpace wide = *SearchSpace::FromJson(Box(250, "[0, 1]"));
  const std::vector<Direction> others(2, Direction::kMinimize);
  EXPECT_EQ(Auto().Chooses(StudySoFar(wide, 20).Input(others)), "gp");
  EXPECT_EQ(Auto().Chooses(StudySoFar(wide, 150).Input(others)), "tpe");
}

TEST(AutoSampler, TakesWhatThoseThatItChoosesForItTake) {
  for (const char* name : {"gp", "tpe", "nsga2"}) {
    const std::unique_ptr<Sampler> sampler = *MakeSampler(name, {});
    EXPECT_TRUE(sampler->takes_objectives() && sampler->takes_constraints()) << name;
  }
  for (const char* name : {"gp", "tpe", "cmaes"}) {
    EXPECT_TRUE((*MakeSampler(name, {}))->takes_prior()) << name;
  }
  EXPECT_LT(samplers::ChanceOfPrior(kMostConfidence, kTrialsOfGpBeforeNsga2), 0.01);
  EXPECT_TRUE(Auto().takes_objectives() && Auto().takes_constraints() && Auto().takes_prior());
}

TEST(AutoSampler, SuggestsWhatTheSamplerThatItNamesDoes) {
  for (const SearchSpace& space : {Numeric(), WithChoice()}) {
    for (const std::size_t trials : {20U, 600U}) {
      const StudySoFar study(space, trials);
      const SamplerInput input = study.Input();
      const auto chosen = MakeSampler(Auto().Chooses(input), {});
      ASSERT_TRUE(chosen.ok()) << chosen.status();
      Random here(7);
      Random there(7);
      EXPECT_EQ(Auto().Suggest(input, here), (*chosen)->Suggest(input, there));
      EXPECT_EQ(here.Uniform(), there.Uniform());
    }
  }
}

TEST(AutoSampler, TellsTheGaussianProcessThatThereIsNoNoise) {
  const Options options = {{"deterministic_objective", true}};
  const StudySoFar study(WithChoice(), 20);
  Random with(7);
  Random of_gp(7);
  Random without(7);
  const auto suggested = (*MakeSampler("auto", options))->Suggest(study.Input(), with);
  EXPECT_EQ(suggested, (*MakeSampler("gp", options))->Suggest(study.Input(), of_gp));
  EXPECT_NE(suggested, Auto().Suggest(study.Input(), without));
}

// A new one knows nothing of what was chosen before.
TEST(AutoSampler, SuggestsTheSameWhateverItWasAskedBefore) {
  const std::unique_ptr<Sampler> used = *MakeSampler("auto", {});
  for (const std::size_t trials : {90U, 105U, 130U, 95U}) {
    const StudySoFar study(Numeric(), trials);
    Random random(3);
    Random again(3);
    EXPECT_EQ(used->Suggest(study.Input(), random),
              (*MakeSampler("auto", {}))->Suggest(study.Input(), again));
  }
}

}  // namespace
}  // namespace espalier
