#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <numbers>

#include "tests/core/samplers/functions.h"
#include "tuner/core/samplers/gp/fit.h"
#include "tuner/core/samplers/gp/gp_space.h"
#include "tuner/core/samplers/gp/improvement.h"
#include "tuner/core/samplers/gp/lbfgs.h"
#include "tuner/core/samplers/gp/trials.h"
#include "tuner/core/samplers/sampler.h"

namespace espalier::samplers::gp {
namespace {

using ::testing::Each;
using ::testing::Le;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

const char* const kNested = R"({
  "n": {"_type": "choice", "_value": [
    {"_name": "A", "p": {"_type": "uniform", "_value": [0, 4]},
     "m": {"_type": "choice", "_value": ["x", "y", "z"]}},
    {"_name": "B", "q": {"_type": "randint", "_value": [0, 30]}}]},
  "batch": {"_type": "choice", "_value": [64, 32, 16]},
  "flag": {"_type": "choice", "_value": [true, false]},
  "one": {"_type": "choice", "_value": ["only"]},
  "lr": {"_type": "loguniform", "_value": [1e-4, 1]},
  "width": {"_type": "qloguniform", "_value": [16, 1024, 1]},
  "steps": {"_type": "randint", "_value": [0, 1000000]},
  "bell": {"_type": "qnormal", "_value": [0, 9, 2]}})";

TEST(GpSpace, HasAnAxisForWhatHasSeveralValues) {
  const SearchSpace space = *SearchSpace::FromJson(kNested);
  const GpSpace axes(space);
  ASSERT_EQ(axes.axes(), 10);
  EXPECT_EQ(axes.kind(0), AxisKind::kOptions);     // n
  EXPECT_EQ(axes.kind(1), AxisKind::kContinuous);  // p
  EXPECT_EQ(axes.kind(3), AxisKind::kGrid);        // q
  EXPECT_EQ(axes.kind(4), AxisKind::kGrid);        // batch: numbers that descend
  EXPECT_EQ(axes.kind(5), AxisKind::kOptions);     // flag
  EXPECT_EQ(axes.kind(7), AxisKind::kGrid);        // width
  EXPECT_EQ(axes.kind(8), AxisKind::kContinuous);  // steps: very many
}

TEST(GpSpace, FindsParametersAgain) {
  const SearchSpace space = *SearchSpace::FromJson(kNested);
  const GpSpace axes(space);
  Random random(7);
  for (int i = 0; i < 200; ++i) {
    const Parameters parameters = space.Sample(random);
    const auto point = axes.PlaceOf(parameters);
    ASSERT_TRUE(point.has_value());
    EXPECT_EQ(axes.Masked(*point), *point);
    const Parameters again = axes.ParametersAt(*point);
    ASSERT_TRUE(space.Validate(again).ok()) << space.Validate(again);
    ASSERT_EQ(again.size(), parameters.size());
    for (std::size_t p = 0; p < again.size(); ++p) {
      const auto number = NumberOf(parameters[p].value);
      if (!number) {
        EXPECT_EQ(again[p], parameters[p]);
      } else {
        EXPECT_NEAR(*NumberOf(again[p].value), *number, 1e-9 * std::max(1.0, std::abs(*number)));
      }
    }
  }
  EXPECT_FALSE(axes.PlaceOf({{"lr", ParameterValue(0.1)}}).has_value());
}

TEST(GpSpace, PutsWhatIsInactiveInOnePlace) {
  const SearchSpace space = *SearchSpace::FromJson(kNested);
  const GpSpace axes(space);
  Point cube = Point::Constant(axes.axes(), 0.9);
  cube[0] = 0;  // "A"
  Point point = axes.FromCube(cube);
  EXPECT_EQ(axes.Masked(point)[2], 2);
  EXPECT_EQ(axes.Masked(point)[3], kInactiveNumber);
  point[0] = 1;  // "B"
  EXPECT_EQ(axes.Masked(point)[1], kInactiveNumber);
  EXPECT_EQ(axes.Masked(point)[2], kInactiveOption);
  EXPECT_GT(axes.Masked(point)[3], 0.8);
}

TEST(GpFit, GradientOfTheLikelihood) {
  Random random(3);
  Observed observed{Points(20, 3), Eigen::VectorXd(20), {false, true, false}};
  for (Eigen::Index i = 0; i < 20; ++i) {
    observed.points.row(i) << random.Uniform(), static_cast<double>(random.Below(3)),
        random.Uniform();
    observed.values[i] = random.Normal();
  }
  const auto at = [&](const Eigen::VectorXd& logs) {
    return LikelihoodOf(
        observed,
        {logs.head(3).array().exp().matrix(), std::exp(logs[3]), std::exp(logs[4]) + kLeastNoise},
        false);
  };
  const Eigen::VectorXd logs = Eigen::VectorXd::LinSpaced(5, 0.5, -2);
  for (Eigen::Index i = 0; i < 5; ++i) {
    constexpr double kStep = 1e-5;
    const Likelihood above = at(logs + kStep * Eigen::VectorXd::Unit(5, i));
    const Likelihood below = at(logs - kStep * Eigen::VectorXd::Unit(5, i));
    const double slope =
        (above.log_likelihood + above.log_prior - below.log_likelihood - below.log_prior) /
        (2 * kStep);
    EXPECT_NEAR(at(logs).gradient[i], slope, 1e-6 * std::max(1.0, std::abs(slope))) << i;
  }
}

TEST(GpFit, TellsNoiseFromAFunctionThatHasNone) {
  const auto fitted = [](double noise) {
    Random random(5);
    Observed observed{Points(40, 2), Eigen::VectorXd(40), {false, false}};
    for (Eigen::Index i = 0; i < 40; ++i) {
      observed.points.row(i) << random.Uniform(), random.Uniform();
      observed.values[i] =
          std::abs(observed.points(i, 0) - 0.3) + std::abs(observed.points(i, 1) - 0.4);
    }
    observed.values = Standardise(observed.values).values;
    for (double& value : observed.values) value += noise * random.Normal();
    const KernelParameters start = DefaultParameters(2, false);
    return std::pair(FitWithOrWithoutNoise(observed, start, std::stop_token()).noise,
                     FitParameters(observed, start, false, std::stop_token()).noise);
  };
  const auto [none, assumed] = fitted(0);
  EXPECT_EQ(none, kLeastNoise);
  EXPECT_GT(assumed, 100 * kLeastNoise) << "or there is nothing to tell";
  const auto [some, also] = fitted(0.5);
  EXPECT_EQ(some, also);
  EXPECT_GT(some, 0.05);
}

TEST(GpMinimization, FindsMinimaInsideAndAtBounds) {
  for (const double high : {2.0, 0.5}) {
    Minimization minimization(Eigen::Vector2d(-1.2, 1), Eigen::Vector2d(-2, -2),
                              Eigen::Vector2d(high, 2), {.gradient = 1e-6, .decrease = 0});
    int evaluations = 0;
    for (; !minimization.done(); ++evaluations) {
      const double x = minimization.next()[0];
      const double y = minimization.next()[1];
      const Eigen::Vector2d gradient(-400 * x * (y - x * x) - 2 * (1 - x), 200 * (y - x * x));
      minimization.Tell(100 * (y - x * x) * (y - x * x) + (1 - x) * (1 - x), gradient);
    }
    EXPECT_NEAR(minimization.best()[0], std::min(high, 1.0), 1e-5);
    EXPECT_NEAR(minimization.best()[1], std::pow(std::min(high, 1.0), 2), 1e-5);
    EXPECT_LT(evaluations, 100);
  }
}

TEST(GpMinimization, TakesValuesThatAreNotFiniteForTooLarge) {
  Minimization minimization(Eigen::VectorXd::Constant(1, 1), Eigen::VectorXd::Constant(1, -10),
                            Eigen::VectorXd::Constant(1, 10), {.gradient = 1e-8});
  while (!minimization.done()) {
    const double x = minimization.next()[0];
    minimization.Tell(x < 0.1 ? kNaN : x - std::log(x), Eigen::VectorXd::Constant(1, 1 - 1 / x));
  }
  EXPECT_NEAR(minimization.best()[0], 1, 1e-6);
}

// Simpson's rule.
double Integral(double low, double high, const std::function<double(double)>& f) {
  constexpr int kPieces = 20000;
  const double step = (high - low) / kPieces;
  double sum = f(low) + f(high);
  for (int i = 1; i < kPieces; ++i) sum += (i % 2 == 1 ? 4 : 2) * f(low + i * step);
  return sum * step / 3;
}

TEST(GpImprovement, IsTheIntegral) {
  const auto density = [](double z) {
    return std::exp(-0.5 * z * z) / std::sqrt(2 * std::numbers::pi);
  };
  for (const double z : {-30.0, -8.0, -1.01, -0.99, 0.0, 0.5, 3.0, 12.0}) {
    const double high = std::max(0.0, z) + 12;
    // Relative to the density at the threshold, so that it can be told in the tails.
    const double scale = density(std::min(z, 0.0));
    const double improvement =
        Integral(0, high, [&](double y) { return y * density(y - z) / scale; });
    EXPECT_NEAR(LogExpectedImprovement(z, 1, 0).value, std::log(improvement) + std::log(scale),
                1e-7)
        << z;
    const double above = Integral(0, high, [&](double y) { return density(y - z) / scale; });
    EXPECT_NEAR(LogProbabilityAbove(z, 1, 0).value, std::log(above) + std::log(scale), 1e-7) << z;
  }
}

TEST(GpImprovement, HasItsSlopesAndNoEnd) {
  for (const auto& function : {LogExpectedImprovement, LogProbabilityAbove}) {
    for (const double mean : {-1e8, -1e5, -999.9, -300.0, -5.0, -1.0, 0.1, 2.0, 50.0}) {
      const double variance = 1.3;
      const Improvement at = function(mean, variance, 0.2);
      const double step = 1e-5 * std::max(1.0, std::abs(mean));
      const double by_mean = (function(mean + step, variance, 0.2).value -
                              function(mean - step, variance, 0.2).value) /
                             (2 * step);
      const double by_variance = (function(mean, variance * (1 + 1e-5), 0.2).value -
                                  function(mean, variance * (1 - 1e-5), 0.2).value) /
                                 (2e-5 * variance);
      EXPECT_NEAR(at.by_mean, by_mean, 1e-4 * std::abs(by_mean) + 1e-9) << mean;
      EXPECT_NEAR(at.by_variance, by_variance, 1e-4 * std::abs(by_variance) + 1e-9) << mean;
    }
  }
}

// A study of one number in [0, 1].
class Line {
 public:
  Line() : space_(*SearchSpace::FromJson(R"({"x": {"_type": "uniform", "_value": [0, 1]}})")) {}

  void Add(double x, double value, bool pruned = false, std::vector<double> constraints = {}) {
    parameters_.push_back({{"x", ParameterValue(x)}});
    constraints_.push_back(std::move(constraints));
    const auto number = static_cast<std::int64_t>(ended_.size());
    ended_.push_back({.trial_number = number,
                      .parameters = &parameters_.back(),
                      .value = value,
                      .pruned = pruned,
                      .constraints = constraints_.back()});
  }
  void Run(double x) {
    parameters_.push_back({{"x", ParameterValue(x)}});
    running_.push_back(&parameters_.back());
  }

  SamplerInput input() const {
    return {space_, Direction::kMinimize, ended_, running_,
            static_cast<std::int64_t>(ended_.size())};
  }
  GpTrials trials(bool merge = false) const {
    return *TrialsOf(input(), GpSpace(space_), 1, merge);
  }
  double Next(const Options& options = {}, std::uint64_t seed = 1) const {
    Random random(seed);
    return *NumberOf((*(*MakeSampler("gp", options))->Suggest(input(), random))[0].value);
  }

 private:
  SearchSpace space_;
  std::deque<Parameters> parameters_;
  std::deque<std::vector<double>> constraints_;
  std::vector<Observation> ended_;
  std::vector<const Parameters*> running_;
};

TEST(GpTrials, CountsWhatFailedAsBadAsTheWorstAndWhatWasPrunedAsNoBetterThanTheMedian) {
  Line line;
  line.Add(0.1, 1);
  line.Add(0.2, 2);
  line.Add(0.3, 9);
  line.Add(0.4, kNaN);
  line.Add(0.5, -kInfinity);
  line.Add(0.6, kInfinity);
  line.Add(0.7, 0, true);
  line.Add(0.8, 5, true);
  const GpTrials trials = line.trials();
  ASSERT_EQ(trials.values.rows(), 8);
  const auto value = [&](int i) { return trials.values(i, 0); };
  EXPECT_NEAR(trials.values.mean(), 0, 1e-12);
  EXPECT_NEAR(trials.values.squaredNorm() / 8, 1, 1e-12);
  EXPECT_GT(value(0), value(1));  // larger is better
  EXPECT_EQ(value(3), value(2));
  EXPECT_EQ(value(4), value(2));
  EXPECT_EQ(value(5), value(2));
  EXPECT_EQ(value(6), value(1));
  EXPECT_GT(value(7), value(2));
  EXPECT_LT(value(7), value(1));
}

TEST(GpTrials, StandardisesValuesOfAnySize) {
  Line line;
  for (const double value : {1e308, -1e308, 0.0}) line.Add(0.5, value);
  EXPECT_NEAR(line.trials().values.squaredNorm(), 3, 1e-9);
}

TEST(GpTrials, DrawsBadValuesTogetherAndLeavesGoodOnes) {
  Line line;
  for (int i = 0; i < 10; ++i) line.Add(i / 10.0, i);
  const GpTrials tame = line.trials();
  line.Add(1, 1e12);
  const GpTrials wild = line.trials();
  const auto apart = [](const GpTrials& trials, int a, int b) {
    return trials.values(a, 0) - trials.values(b, 0);
  };
  for (const GpTrials* trials : {&tame, &wild}) {
    EXPECT_NEAR(apart(*trials, 0, 1), apart(*trials, 3, 4), 1e-12);
    EXPECT_LT(apart(*trials, 8, 9), 0.8 * apart(*trials, 0, 1));
    EXPECT_GT(apart(*trials, 8, 9), 0);
  }
  EXPECT_GT(apart(wild, 0, 4), 0.05 * apart(wild, 0, 10));
}

TEST(GpTrials, LeavesTheFrontOfSeveralObjectives) {
  const SearchSpace space =
      *SearchSpace::FromJson(R"({"x": {"_type": "uniform", "_value": [0, 1]}})");
  const std::vector<Direction> others = {Direction::kMinimize};
  std::deque<Parameters> parameters;
  const std::vector<double> second = {4, 3, 2, 1, 0, 9, 90};
  const std::vector<double> first = {0, 1, 2, 3, 4, 9, 90};
  std::vector<Observation> ended;
  for (std::size_t i = 0; i < first.size(); ++i) {
    parameters.push_back({{"x", ParameterValue(static_cast<double>(i) / 10)}});
    ended.push_back({.trial_number = static_cast<std::int64_t>(i),
                     .parameters = &parameters.back(),
                     .value = first[i],
                     .other_values = {&second[i], 1}});
  }
  const GpTrials trials = *TrialsOf({.space = space,
                                     .direction = Direction::kMinimize,
                                     .ended = ended,
                                     .running = {},
                                     .trial_number = 7,
                                     .other_directions = others},
                                    GpSpace(space), 1, false);
  const double step = trials.values(0, 0) - trials.values(1, 0);
  for (int i = 1; i < 4; ++i) {
    EXPECT_NEAR(trials.values(i, 0) - trials.values(i + 1, 0), step, 1e-12);
    EXPECT_NEAR(trials.values(i + 1, 1) - trials.values(i, 1), step, 1e-12);
  }
  EXPECT_LT(trials.values(5, 0) - trials.values(6, 0), 40 * step);  // of 81
}

// Values of a moment, beside which those of whole trials are another matter, are no values; where a
// trial was pruned, and one runs, is known.
TEST(GpTrials, OfSeveralObjectivesHaveNoValuesWherePruned) {
  const SearchSpace space =
      *SearchSpace::FromJson(R"({"x": {"_type": "uniform", "_value": [0, 1]}})");
  const std::vector<Direction> others = {Direction::kMinimize};
  std::deque<Parameters> parameters;
  const std::vector<double> second = {3};
  std::vector<Observation> ended;
  for (int i = 0; i < 60; ++i) {
    parameters.push_back({{"x", ParameterValue(i / 60.0)}});
    ended.push_back({.trial_number = i,
                     .parameters = &parameters.back(),
                     .value = i < 30 ? i : 1000.0 + i,
                     .pruned = i >= 30,
                     .other_values = second});
  }
  const std::vector<const Parameters*> running = {&parameters.front()};
  SamplerInput input{.space = space,
                     .direction = Direction::kMinimize,
                     .ended = ended,
                     .running = running,
                     .trial_number = 61,
                     .other_directions = others};
  const GpTrials trials = *TrialsOf(input, GpSpace(space), 1, false);
  EXPECT_EQ(trials.values.rows(), 30);
  EXPECT_LT(trials.points.maxCoeff(), 0.5);
  ASSERT_EQ(trials.running.rows(), kMostPruned + 1);
  EXPECT_NEAR(trials.running(0, 0), 40 / 60.0, 1e-12) << "the newest ones";
  EXPECT_EQ(trials.running(kMostPruned, 0), 0);
  input.other_directions = {};
  for (Observation& trial : ended) trial.other_values = {};
  EXPECT_EQ(TrialsOf(input, GpSpace(space), 1, false)->values.rows(), 60);
}

TEST(GpTrials, TakesRepeatedPointsAsOneWhereThereIsNoNoise) {
  Line line;
  line.Add(0.5, 1);
  line.Add(0.2, 0);
  line.Add(0.5, 3);
  EXPECT_EQ(line.trials(false).values.rows(), 3);
  const GpTrials merged = line.trials(true);
  ASSERT_EQ(merged.values.rows(), 2);
  EXPECT_EQ(merged.points(0, 0), 0.2);
  EXPECT_NEAR(merged.values(0, 0), 1, 1e-12);  // of 0 and 2
  EXPECT_NEAR(merged.values(1, 0), -1, 1e-12);
}

TEST(GpTrials, OfVeryManyTakesTheBestAndWhatLiesFarApart) {
  Line line;
  Random random(1);
  for (int i = 0; i < 3000; ++i) line.Add(0.3 * random.Uniform(), random.Uniform());
  line.Add(0.9, 5);
  line.Add(0.1, -1);
  const GpTrials trials = line.trials();
  EXPECT_EQ(trials.values.rows(), kMostTrials);
  EXPECT_EQ(trials.leading, kLeadingTrials);
  EXPECT_EQ(trials.points(0, 0), 0.1);
  EXPECT_EQ(trials.points.topRows(kLeadingTrials).maxCoeff(), 0.9);
}

TEST(GpSampler, FindsAMinimum) {
  Line line;
  double nearest = 1;
  for (int i = 0; i < 16; ++i) {
    const double x = i < 4 ? 0.05 + 0.3 * i
                           : line.Next({{"deterministic_objective", true}, {"startup_trials", 4}});
    line.Add(x, std::pow(x - 0.537, 2));
    nearest = std::min(nearest, std::abs(x - 0.537));
  }
  EXPECT_LT(nearest, 2e-3);
}

TEST(GpSampler, GoesElsewhereWhileATrialRunsThere) {
  Line line;
  for (int i = 0; i < 12; ++i) line.Add(i / 11.0, std::pow(i / 11.0 - 0.4, 2));
  const double alone = line.Next({{"deterministic_objective", true}});
  line.Run(alone);
  EXPECT_GT(std::abs(line.Next({{"deterministic_objective", true}}) - alone), 1e-3);
}

TEST(GpSampler, KeepsToConstraints) {
  Line line;
  // The minimum is at 0.2, but only x >= 0.6 is allowed.
  for (int i = 0; i < 12; ++i) {
    line.Add(i / 11.0, std::pow(i / 11.0 - 0.2, 2), false, {0.6 - i / 11.0});
  }
  EXPECT_NEAR(line.Next(), 0.6, 0.06);
}

TEST(GpSampler, SeeksWhatKeepsToConstraintsWhereNothingDoesYet) {
  Line line;
  for (int i = 0; i < 12; ++i) line.Add(i / 24.0, i, false, {1 - i / 24.0, kNaN});
  EXPECT_GT(line.Next(), 0.6);
}

TEST(GpSampler, FindsAMinimumAmongOutliers) {
  Line line;
  line.Add(0.95, 1e12);
  line.Add(0.02, kNaN);
  double nearest = 1;
  for (int i = 0; i < 18; ++i) {
    const double x = i < 6 ? 0.05 + 0.15 * i
                           : line.Next({{"deterministic_objective", true}, {"startup_trials", 4}});
    line.Add(x, std::pow(x - 0.437, 2));
    nearest = std::min(nearest, std::abs(x - 0.437));
  }
  EXPECT_LT(nearest, 2e-3);
}

TEST(GpSampler, ReturnsOnceItIsToStop) {
  Line line;
  for (int i = 0; i < 400; ++i) line.Add(i / 399.0, std::sin(i));
  std::stop_source source;
  source.request_stop();
  SamplerInput input = line.input();
  input.stop = source.get_token();
  Random random(1);
  EXPECT_TRUE((*MakeSampler("gp", {}))->Suggest(input, random).has_value());
}

TEST(GpSampler, TakesNestedChoicesObjectivesConstraintsAndRunningTrialsAtOnce) {
  const SearchSpace space = *SearchSpace::FromJson(kNested);
  const Options options = {{"preliminary_samples", 64}, {"local_searches", 4}};
  const auto used = *MakeSampler("gp", options);
  const std::vector<Direction> others = {Direction::kMaximize};
  std::deque<Parameters> parameters;
  std::deque<std::vector<double>> told;
  std::vector<Observation> ended;
  std::vector<const Parameters*> running;
  for (int i = 0; i < 24; ++i) {
    const SamplerInput input{.space = space,
                             .direction = Direction::kMinimize,
                             .ended = ended,
                             .running = running,
                             .trial_number = i,
                             .other_directions = others};
    const auto suggest = [&](const Sampler& sampler) {
      Random random(MixSeed(9, static_cast<std::uint64_t>(i)));
      return *sampler.Suggest(input, random);
    };
    parameters.push_back(suggest(*used));
    ASSERT_TRUE(space.Validate(parameters.back()).ok()) << space.Validate(parameters.back());
    EXPECT_EQ(suggest(**MakeSampler("gp", options)), parameters.back());
    if (i % 6 == 5) {
      running.push_back(&parameters.back());
      continue;
    }
    const double lr = *NumberOf(*Find(parameters.back(), "lr"));
    // Some fail, and some do not tell all that they are asked for.
    told.push_back(i % 7 == 3 ? std::vector<double>{}
                              : std::vector<double>{-lr, i % 5 == 1 ? kNaN : lr - 0.5});
    ended.push_back({.trial_number = i,
                     .parameters = &parameters.back(),
                     .value = i % 8 == 6 ? kNaN : lr,
                     .other_values = {told.back().data(), told.back().empty() ? 0U : 1U},
                     .constraints = {told.back().data() + (told.back().empty() ? 0 : 1),
                                     told.back().empty() ? 0U : 1U}});
  }
}

// Two objectives over a square, at odds: the front is the diagonal between their minima.
TEST(GpSampler, ExtendsTheFrontOfSeveralObjectives) {
  const SearchSpace space = *SearchSpace::FromJson(
      R"({"x": {"_type": "uniform", "_value": [0, 1]}, "y": {"_type": "uniform", "_value": [0, 1]}})");
  const auto sampler = *MakeSampler("gp", {{"deterministic_objective", true}});
  EXPECT_TRUE(sampler->takes_objectives());
  const std::vector<Direction> others = {Direction::kMaximize};
  std::deque<Parameters> parameters;
  std::deque<double> second;
  std::vector<Observation> ended;
  std::vector<double> distances;
  for (int i = 0; i < 22; ++i) {
    Random random(MixSeed(1, static_cast<std::uint64_t>(i)));
    parameters.push_back(*sampler->Suggest({.space = space,
                                            .direction = Direction::kMinimize,
                                            .ended = ended,
                                            .running = {},
                                            .trial_number = i,
                                            .other_directions = others},
                                           random));
    const double x = *NumberOf(parameters.back()[0].value);
    const double y = *NumberOf(parameters.back()[1].value);
    second.push_back(-std::pow(x - 0.8, 2) - std::pow(y - 0.8, 2));
    ended.push_back({.trial_number = i,
                     .parameters = &parameters.back(),
                     .value = std::pow(x - 0.2, 2) + std::pow(y - 0.2, 2),
                     .other_values = {&second.back(), 1}});
    if (i >= 17) distances.push_back(std::abs(x - y));
  }
  EXPECT_THAT(distances, Each(Le(0.15)));
}

}  // namespace
}  // namespace espalier::samplers::gp
