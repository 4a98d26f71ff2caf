#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <set>

#include "tests/core/samplers/functions.h"
#include "tuner/core/samplers/cma_model.h"
#include "tuner/core/samplers/sampler.h"

namespace espalier {
namespace {

using samplers::CmaModel;
using samplers::CmaSettings;
using samplers::CmaSpace;

constexpr double kFailed = std::numeric_limits<double>::quiet_NaN();
constexpr double kEndless = std::numeric_limits<double>::infinity();

const char* const kBox = R"({
  "x": {"_type": "uniform", "_value": [-5, 10]}, "lr": {"_type": "loguniform", "_value": [1e-5, 1]},
  "n": {"_type": "randint", "_value": [1, 13]}})";

double LossOf(const Parameters& p) {
  return std::pow(*NumberOf(*Find(p, "x")) - 3, 2) +
         std::pow(std::log10(*NumberOf(*Find(p, "lr"))) + 3, 2) +
         0.1 * std::pow(*NumberOf(*Find(p, "n")) - 7, 2);
}

// A study that grows by a sampler's suggestions.
class CmaStudy {
 public:
  explicit CmaStudy(const char* space_json) : space_(*SearchSpace::FromJson(space_json)) {}

  SamplerInput Input() const {
    return {.space = space_,
            .direction = direction,
            .ended = ended,
            .running = {},
            .trial_number = static_cast<std::int64_t>(ended.size()),
            .study_seed = 11};
  }
  Parameters Next(const Sampler& sampler) const {
    Random random(MixSeed(5, ended.size()));
    return *sampler.Suggest(Input(), random);
  }
  void End(const Parameters& parameters, double value, bool pruned = false) {
    const auto number = static_cast<std::int64_t>(ended.size());
    kept_.push_back(parameters);
    ended.push_back({.trial_number = number,
                     .parameters = &kept_.back(),
                     .value = value,
                     .pruned = pruned,
                     .at = Time{number}});
  }
  void Run(const Sampler& sampler, int trials) {
    for (int i = 0; i < trials; ++i) {
      const Parameters parameters = Next(sampler);
      const double loss = LossOf(parameters);
      End(parameters, direction == Direction::kMinimize ? loss : -loss);
    }
  }
  const SearchSpace& space() const { return space_; }

  Direction direction = Direction::kMinimize;
  std::vector<Observation> ended;

 private:
  SearchSpace space_;
  std::deque<Parameters> kept_;
};

std::unique_ptr<Sampler> Made(const Options& options) { return *MakeSampler("cmaes", options); }

std::shared_ptr<const CmaModel> LearntOf(const CmaStudy& study, const CmaSettings& settings,
                                         std::shared_ptr<const CmaModel> known = nullptr) {
  const CmaSpace space(study.space(), settings.margin);
  return samplers::ModelOf(study.Input(), space, settings, std::move(known));
}

TEST(CmaEsSampler, AFreshOneSuggestsWhatAUsedOneDoes) {
  for (const Options& options :
       {Options{}, Options{{"with_margin", true}}, Options{{"lr_adapt", true}},
        Options{{"separable", true}, {"restart", "bipop"}}}) {
    const auto used = Made(options);
    CmaStudy study(kBox);
    for (int i = 0; i < 60; ++i) {
      const Parameters suggestion = study.Next(*used);
      ASSERT_EQ(suggestion, study.Next(*Made(options))) << i;
      study.End(suggestion, LossOf(suggestion), i % 5 == 4);
    }
    // One that has seen another study, and this one with a result that has changed.
    CmaStudy other(kBox);
    other.Run(*used, 30);
    EXPECT_EQ(study.Next(*used), study.Next(*Made(options)));
    study.ended[12].value += 100;
    EXPECT_EQ(study.Next(*used), study.Next(*Made(options)));
    Parameters changed = *study.ended[3].parameters;
    changed[0].value = -4.5;
    study.ended[3].parameters = &changed;
    EXPECT_EQ(study.Next(*used), study.Next(*Made(options)));
  }
}

TEST(CmaEsSampler, TakesResultsInTheOrderInWhichTheyCame) {
  const auto sampler = Made({});
  CmaStudy study(kBox);
  study.Run(*sampler, 40);
  const Parameters in_order = study.Next(*sampler);
  std::swap(study.ended[3], study.ended[30]);  // as they are listed
  EXPECT_EQ(study.Next(*sampler), in_order);
  std::swap(study.ended[3].at, study.ended[30].at);  // as they came
  EXPECT_NE(study.Next(*sampler), in_order);
}

TEST(CmaEsSampler, MirrorsWhatIsToBeLarge) {
  CmaStudy small(kBox), large(kBox);
  large.direction = Direction::kMaximize;
  const auto sampler = Made({});
  small.Run(*sampler, 50);
  large.Run(*sampler, 50);
  EXPECT_EQ(small.Next(*sampler), large.Next(*sampler));
}

// What the model has learnt from one generation of seven, the last of which came to this.
Eigen::VectorXd MeanWithLast(double value, bool pruned, Direction direction) {
  CmaStudy study(kBox);
  study.direction = direction;
  Random random(8);
  for (int i = 0; i < 7; ++i) {
    const double better = direction == Direction::kMinimize ? -i : i;
    study.End(study.space().Sample(random), i < 6 ? better : value, i < 6 ? i == 5 : pruned);
  }
  return LearntOf(study, {})->cma.mean();
}

TEST(CmaEsSampler, RanksPrunedTrialsBehindCompleteOnesAndFailedOnesLast) {
  for (const Direction direction : {Direction::kMinimize, Direction::kMaximize}) {
    const double best = direction == Direction::kMinimize ? -1000 : 1000;
    const Eigen::VectorXd failed = MeanWithLast(kFailed, false, direction);
    EXPECT_EQ(MeanWithLast(kEndless, false, direction), failed);
    EXPECT_EQ(MeanWithLast(-kEndless, false, direction), failed);
    EXPECT_EQ(MeanWithLast(kFailed, true, direction), failed);
    EXPECT_NE(MeanWithLast(best, false, direction), failed);
    // Also the best pruned one is behind; before the other pruned one it makes no difference to
    // the better half.
    EXPECT_EQ(MeanWithLast(best, true, direction), failed);
  }
}

TEST(CmaEsSampler, LearnsNothingOfAGenerationThatFailed) {
  CmaStudy study(kBox);
  Random random(8);
  for (int i = 0; i < 7; ++i) study.End(study.space().Sample(random), kFailed);
  const auto model = LearntOf(study, {});
  EXPECT_EQ(model->taken, 7U);
  EXPECT_EQ(model->cma.mean(), Eigen::VectorXd::Constant(3, 0.5));
  EXPECT_DOUBLE_EQ(model->cma.sigma(), 1.0 / 6);
}

TEST(CmaEsSampler, PassesOverTrialsThatAreNotOfTheSpace) {
  CmaStudy with(kBox), without(kBox);
  Random random(8);
  for (int i = 0; i < 14; ++i) {
    const Parameters parameters = with.space().Sample(random);
    with.End(parameters, i);
    without.End(parameters, i);
    with.End({{"x", ParameterValue(1e9)}}, -1);
    with.End({{"x", ParameterValue(0.5)}, {"lr", ParameterValue(0.5)}}, -1);
  }
  EXPECT_EQ(LearntOf(with, {})->cma.mean(), LearntOf(without, {})->cma.mean());
}

TEST(CmaEsSampler, IsNotLedAstrayByATrialOfSomebodysOwn) {
  const auto sampler = Made({});
  CmaStudy study(kBox);
  study.Run(*sampler, 140);
  const double sigma = LearntOf(study, {})->cma.sigma();
  for (int i = 0; i < 7; ++i) {
    if (i == 3) {
      study.End({{"x", -5.0}, {"lr", 1.0}, {"n", std::int64_t{1}}}, 1e12);
    } else {
      study.Run(*sampler, 1);
    }
  }
  EXPECT_LT(LearntOf(study, {})->cma.sigma(), 3 * sigma);
}

TEST(CmaEsSampler, DrawsByItselfWhatIsNoNumberOrNotAlwaysThere) {
  const auto sampler = Made({{"startup_trials", 2}});
  CmaStudy study(R"({
    "x": {"_type": "uniform", "_value": [0, 1]}, "one": {"_type": "randint", "_value": [4, 5]},
    "c": {"_type": "choice", "_value": [
      {"_name": "a", "p": {"_type": "uniform", "_value": [0, 1]}}, {"_name": "b"}]}})");
  const CmaSpace space(study.space(), false);
  EXPECT_EQ(space.dimensions(), 1U);
  std::set<std::string> options;
  double last = 0;
  for (int i = 0; i < 120; ++i) {
    const Parameters parameters = study.Next(*sampler);
    ASSERT_TRUE(study.space().Validate(parameters).ok());
    last = *NumberOf(*Find(parameters, "x"));
    if (i >= 90) options.insert(ToJson(*Find(parameters, "c")));
    study.End(parameters, std::abs(last - 0.3));
  }
  EXPECT_EQ(options.size(), 2U);
  EXPECT_NEAR(last, 0.3, 0.02);
}

TEST(CmaEsSampler, WithMarginDoesNotStickToAWholeNumber) {
  // The loss of "n" is small beside that of "x" until "x" is nearly right.
  const char* const space = R"({"x": {"_type": "uniform", "_value": [-5, 10]},
                                "n": {"_type": "randint", "_value": [0, 10]}})";
  const auto with = Made({{"with_margin", true}});
  CmaStudy study(space);
  std::set<std::int64_t> late;
  for (int i = 0; i < 300; ++i) {
    const Parameters parameters = study.Next(*with);
    ASSERT_TRUE(study.space().Validate(parameters).ok());
    const double x = *NumberOf(parameters[0].value);
    const std::int64_t n = std::get<std::int64_t>(parameters[1].value);
    if (i >= 200) late.insert(n);
    study.End(parameters, (x - 3) * (x - 3) + 1e-3 * static_cast<double>((n - 8) * (n - 8)));
  }
  EXPECT_GE(late.size(), 2U);
  const CmaSettings settings{.margin = true};
  const auto model = LearntOf(study, settings);
  EXPECT_NEAR(model->cma.mean()[1] * 9, 8, 1.01);
}

// Populations of the starts of a study whose values are all equal: each ends soon.
std::vector<std::size_t> Populations(const CmaSettings& settings, int trials) {
  CmaStudy study(R"({"x": {"_type": "uniform", "_value": [0, 1]},
                  "y": {"_type": "uniform", "_value": [0, 1]}})");
  Random random(2);
  std::vector<std::size_t> populations;
  std::shared_ptr<const CmaModel> model;
  for (int i = 0; i < trials; ++i) {
    study.End(study.space().Sample(random), 1);
    const auto before = model ? model->starts : 99;
    model = LearntOf(study, settings, std::move(model));
    if (model->starts != before) populations.push_back(model->cma.population());
  }
  EXPECT_EQ(LearntOf(study, settings)->cma.population(), populations.back());
  return populations;
}

TEST(CmaEsSampler, StartsAnewWithLargerPopulations) {
  using samplers::CmaRestart;
  const CmaSettings ipop{.restart = CmaRestart::kIpop, .restart_factor = 2};
  EXPECT_EQ(Populations(ipop, 800), (std::vector<std::size_t>{6, 12, 24, 48}));
  EXPECT_EQ(Populations({}, 300), (std::vector<std::size_t>{6}));
  // A large start, and then small ones as long as they have had fewer trials than large ones; the
  // first start counts as a small one.
  const CmaSettings bipop{.restart = CmaRestart::kBipop, .restart_factor = 2};
  const auto populations = Populations(bipop, 2500);
  ASSERT_GE(populations.size(), 6U);
  EXPECT_EQ(populations[1], 12U);
  std::size_t largest = 12;
  std::set<std::size_t> small;
  for (std::size_t i = 2; i < populations.size(); ++i) {
    if (populations[i] == 2 * largest) {
      largest *= 2;
    } else {
      EXPECT_GE(populations[i], 6U);
      EXPECT_LE(populations[i], largest);
      small.insert(populations[i]);
    }
  }
  EXPECT_GE(largest, 24U);
  EXPECT_FALSE(small.empty());
}

TEST(CmaEsSampler, EachOptionChangesWhatIsDrawn) {
  CmaStudy study(kBox);
  Random random(3);
  for (int i = 0; i < 200; ++i) study.End(study.space().Sample(random), 1);
  const Options ipop{{"restart", "ipop"}};
  const Parameters by_default = study.Next(*Made({}));
  for (const Options& options :
       {ipop, Options{{"startup_trials", 201}}, Options{{"popsize", 9}}, Options{{"sigma0", 0.2}},
        Options{{"separable", true}}, Options{{"with_margin", true}}, Options{{"lr_adapt", true}},
        Options{{"restart", "bipop"}}}) {
    EXPECT_NE(study.Next(*Made(options)), by_default) << options.begin()->first;
  }
  const Parameters anew = study.Next(*Made(ipop));
  EXPECT_NE(study.Next(*Made({{"restart", "ipop"}, {"inc_popsize", 3}})), anew);
  EXPECT_NE(study.Next(*Made({{"restart", "bipop"}})), anew);
}

TEST(CmaEsSampler, FindsTheMinimum) {
  for (const Options& options :
       {Options{}, Options{{"separable", true}}, Options{{"with_margin", true}},
        Options{{"sigma0", 0.3}}, Options{{"popsize", 12}}}) {
    const auto& function = testing::FunctionNamed("branin");
    EXPECT_LT(testing::MedianBest("cmaes", options, function, 150, 5), function.optimum + 0.2);
  }
}

TEST(CmaEsSampler, RefusesWhatDoesNotGoTogether) {
  const auto refusal = [](const Options& options) {
    return std::string(MakeSampler("cmaes", options).status().message());
  };
  EXPECT_EQ(refusal({{"lr_adapt", true}, {"with_margin", true}}),
            "sampler \"cmaes\": option \"lr_adapt\" needs false where separable or with_margin is "
            "true, got true");
  EXPECT_EQ(refusal({{"separable", true}, {"with_margin", true}}),
            "sampler \"cmaes\": option \"separable\" needs false where with_margin is true, got "
            "true");
  EXPECT_EQ(refusal({{"popsize", 1}}),
            "sampler \"cmaes\": option \"popsize\" needs 0 or at least 2, got 1");
}

TEST(CmaEsSampler, RefusesASpaceWithoutANumberThatIsAlwaysThere) {
  const auto refusal = [](const char* space_json) {
    return std::string(Made({})->Fits(*SearchSpace::FromJson(space_json)).message());
  };
  EXPECT_EQ(refusal(kBox), "");
  EXPECT_TRUE(Made({})->Fits(SearchSpace()).ok());
  EXPECT_EQ(refusal(R"({"c": {"_type": "choice", "_value": [
                          {"_name": "a", "p": {"_type": "uniform", "_value": [0, 1]}}]},
                        "one": {"_type": "randint", "_value": [4, 5]}})"),
            "sampler \"cmaes\" needs a parameter that is a number, may be more than one value and "
            "depends on no choice, and the space has none: give \"tpe\", which takes any space");
}

TEST(CmaEsSampler, TellsHowLongItTakes) {
  const auto sampler = Made({});
  CmaStudy study(kBox);
  study.Run(*sampler, 100);
  const double known = sampler->Work(study.Input());
  const double anew = Made({})->Work(study.Input());
  EXPECT_GT(anew, known + 1000);
  // A result that changes, as of a trial that may go on, has all be learnt again.
  study.ended[2].value += 1;
  EXPECT_NEAR(sampler->Work(study.Input()), anew, 500);
}

}  // namespace
}  // namespace espalier
