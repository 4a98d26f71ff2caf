#include "tests/core/samplers/functions.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/random.h"
#include "tests/core/samplers/recipes.h"
#include "tests/core/samplers/trials_in_turn.h"
#include "tuner/core/samplers/sampler.h"

namespace espalier::testing {

double Number(const Parameters& parameters, std::string_view name) {
  const ParameterValue& value = *Find(parameters, name);
  if (const auto* i = std::get_if<std::int64_t>(&value)) return static_cast<double>(*i);
  return std::get<double>(value);
}

std::string Text(const Parameters& parameters, std::string_view name) {
  return std::get<std::string>(*Find(parameters, name));
}

std::vector<double> Numbers(const Parameters& parameters) {
  std::vector<double> numbers;
  for (const Parameter& p : parameters) numbers.push_back(*NumberOf(p.value));
  return numbers;
}

std::string Box(int dimensions, const char* range) {
  std::string json = "{";
  for (int i = 0; i < dimensions; ++i) {
    absl::StrAppend(&json, i > 0 ? ", " : "", "\"x", i,
                    "\": {\"_type\": \"uniform\", \"_value\": ", range, "}");
  }
  return json + "}";
}

void Reflect(const std::vector<double>& normal, std::vector<double>& x) {
  double along = 0;
  double length = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    along += normal[i] * x[i];
    length += normal[i] * normal[i];
  }
  for (std::size_t i = 0; i < x.size(); ++i) x[i] -= 2 * along / length * normal[i];
}

namespace {

double Branin(const Parameters& p) {
  const double x = Number(p, "x");
  const double y = Number(p, "y");
  constexpr double kPi = std::numbers::pi;
  const double bowl = y - 5.1 / (4 * kPi * kPi) * x * x + 5 / kPi * x - 6;
  return bowl * bowl + 10 * (1 - 1 / (8 * kPi)) * std::cos(x) + 10;
}

double Hartmann6(const Parameters& p) {
  constexpr double kA[4][6] = {{10, 3, 17, 3.5, 1.7, 8},
                               {0.05, 10, 17, 0.1, 8, 14},
                               {3, 3.5, 1.7, 10, 17, 8},
                               {17, 8, 0.05, 10, 0.1, 14}};
  constexpr double kP[4][6] = {{1312, 1696, 5569, 124, 8283, 5886},
                               {2329, 4135, 8307, 3736, 1004, 9991},
                               {2348, 1451, 3522, 2883, 3047, 6650},
                               {4047, 8828, 8732, 5743, 1091, 381}};
  constexpr double kAlpha[4] = {1, 1.2, 3, 3.2};
  const std::vector<double> x = Numbers(p);
  double sum = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    double distance = 0;
    for (std::size_t j = 0; j < 6; ++j) {
      distance += kA[i][j] * std::pow(x[j] - 1e-4 * kP[i][j], 2);
    }
    sum -= kAlpha[i] * std::exp(-distance);
  }
  return sum;
}

double Ackley10(const Parameters& p) {
  double squares = 0;
  double cosines = 0;
  for (const double shifted : Numbers(p)) {
    const double x = shifted - 3.3;
    squares += x * x / 10;
    cosines += std::cos(2 * std::numbers::pi * x) / 10;
  }
  return -20 * std::exp(-0.2 * std::sqrt(squares)) - std::exp(cosines) + 20 + std::numbers::e;
}

double Rosenbrock5(const Parameters& p) {
  const std::vector<double> x = Numbers(p);
  double sum = 0;
  for (std::size_t i = 0; i + 1 < x.size(); ++i) {
    sum += 100 * std::pow(x[i + 1] - x[i] * x[i], 2) + std::pow(1 - x[i], 2);
  }
  return sum;
}

double Levy4(const Parameters& p) {
  constexpr double kPi = std::numbers::pi;
  std::vector<double> w;
  for (const double x : Numbers(p)) w.push_back(1 + (x - 1) / 4);
  double sum = std::pow(std::sin(kPi * w.front()), 2);
  for (std::size_t i = 0; i + 1 < w.size(); ++i) {
    sum += std::pow(w[i] - 1, 2) * (1 + 10 * std::pow(std::sin(kPi * w[i] + 1), 2));
  }
  return sum + std::pow(w.back() - 1, 2) * (1 + std::pow(std::sin(2 * kPi * w.back()), 2));
}

// Its axes are 100 times as long as one another at the most, and lie across those of the space.
double Ellipsoid8(const Parameters& p) {
  std::vector<double> x = Numbers(p);
  std::vector<double> rising(x.size());
  std::vector<double> waving(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto n = static_cast<double>(i);
    x[i] -= 2 * std::sin(1.7 * n + 0.5);
    rising[i] = n + 1;
    waving[i] = std::cos(2.3 * n);
  }
  Reflect(rising, x);
  Reflect(waving, x);
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    sum += std::pow(10, 4 * static_cast<double>(i) / 7) * x[i] * x[i];
  }
  return sum;
}

double Michalewicz5(const Parameters& p) {
  const std::vector<double> x = Numbers(p);
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double of_square = static_cast<double>(i + 1) * x[i] * x[i] / std::numbers::pi;
    sum -= std::sin(x[i]) * std::pow(std::sin(of_square), 20);
  }
  return sum;
}

double StyblinskiTang5(const Parameters& p) {
  double sum = 0;
  for (const double x : Numbers(p)) sum += 0.5 * (x * x * x * x - 16 * x * x + 5 * x);
  return sum;
}

constexpr const char* kBraninSpace = R"({
  "x": {"_type": "uniform", "_value": [-5, 10]}, "y": {"_type": "uniform", "_value": [0, 15]}})";

}  // namespace

const std::vector<TestFunction>& TestFunctions() {
  static const std::vector<TestFunction> functions = {
      {"branin", kBraninSpace, Branin, 0.39788735772973816},
      {"hartmann6", Box(6, "[0, 1]"), Hartmann6, -3.32236801141551},
      {"ackley10", Box(10, "[-32.768, 32.768]"), Ackley10, 0},
      {"rosenbrock5", Box(5, "[-5, 10]"), Rosenbrock5, 0},
      {"levy4", Box(4, "[-10, 10]"), Levy4, 0},
      {"ellipsoid8", Box(8, "[-5, 5]"), Ellipsoid8, 0},
      {"michalewicz5", Box(5, "[0, 3.141592653589793]"), Michalewicz5, -4.687658179088148},
      {"styblinski_tang5", Box(5, "[-5, 5]"), StyblinskiTang5, -195.83082851885698},
      {"hartmann6_noisy", Box(6, "[0, 1]"), Hartmann6, -3.32236801141551, 0.3},
      {"recipe", kRecipeSpace, Recipe, kRecipeOptimum},
      {"mixed", kNestedRecipeSpace, Recipe, kRecipeOptimum},
      {"classifier", kClassifierSpace, Classifier, kClassifierOptimum},
      {"boosting", kBoostingSpace, Boosting, kBoostingOptimum},
      {"augmentation", kAugmentationSpace, Augmentation, kAugmentationOptimum}};
  return functions;
}

const TestFunction& Bowl() {
  static const TestFunction bowl{.name = "bowl",
                                 .space_json = R"({"x": {"_type": "uniform", "_value": [0, 1]},
                                                  "y": {"_type": "uniform", "_value": [0, 1]}})",
                                 .value =
                                     [](const Parameters& at) {
                                       const double x = *NumberOf(*Find(at, "x")) - 0.3;
                                       const double y = *NumberOf(*Find(at, "y")) - 0.3;
                                       return std::sqrt(x * x + y * y);
                                     },
                                 .optimum = 0};
  return bowl;
}

const TestFunction& FunctionNamed(const std::string& name) {
  for (const auto* functions : {&TestFunctions(), &DevelopmentFunctions()}) {
    for (const TestFunction& function : *functions) {
      if (function.name == name) return function;
    }
  }
  ESPALIER_CHECK(false, "no such test function: " + name);
}

double ToldValue(const TestFunction& function, const Parameters& parameters, std::uint64_t seed,
                 std::int64_t trial_number) {
  const double value = function.value(parameters);
  if (function.noise == 0) return value;
  Random random(MixSeed(MixSeed(seed, "noise"), static_cast<std::uint64_t>(trial_number)));
  return value + function.noise * random.Normal();
}

std::vector<double> BestByTrial(const std::string& sampler_name, const Options& options,
                                const TestFunction& function, int trials, std::uint64_t seed) {
  return BestByTrial(**MakeSampler(sampler_name, options), function, trials, seed);
}

std::vector<double> BestByTrial(const Sampler& sampler, const TestFunction& function, int trials,
                                std::uint64_t seed, std::span<const ScoredTrial> before) {
  TrialsInTurn study{
      .space = *SearchSpace::FromJson(function.space_json), .seed = seed, .before = before};
  double best_told = std::numeric_limits<double>::infinity();
  std::vector<double> best;
  for (std::int64_t number = 0; number < trials; ++number) {
    auto suggestion = study.Ask(sampler);
    if (!suggestion) break;
    const double told = ToldValue(function, *suggestion, seed, number);
    best.push_back(told < best_told ? function.value(*suggestion) : best.back());
    best_told = std::min(best_told, told);
    study.End(*std::move(suggestion), told);
  }
  return best;
}

double BestOf(const std::string& sampler, const Options& options, const TestFunction& function,
              int trials, std::uint64_t seed) {
  return BestByTrial(sampler, options, function, trials, seed).back();
}

double MedianBest(const std::string& sampler, const Options& options, const TestFunction& function,
                  int trials, int seeds) {
  std::vector<double> best;
  for (int seed = 0; seed < seeds; ++seed) {
    best.push_back(BestOf(sampler, options, function, trials, static_cast<std::uint64_t>(seed)));
  }
  std::sort(best.begin(), best.end());
  const std::size_t middle = best.size() / 2;
  return best.size() % 2 == 1 ? best[middle] : 0.5 * (best[middle - 1] + best[middle]);
}

}  // namespace espalier::testing
