#include "tests/core/samplers/functions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <limits>
#include <numbers>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "tuner/core/samplers/sampler.h"

namespace espalier::testing {
namespace {

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
  for (const Parameter& p : parameters) numbers.push_back(std::get<double>(p.value));
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

// A made-up training recipe: optimizer, learning rate that must fit the batch size, shape of net.
// Momentum matters to sgd alone, beta2 to adam and adamw.
double Recipe(const Parameters& p) {
  struct Optimizer {
    const char* name;
    double log_rate;
    double penalty;
  };
  constexpr std::array<Optimizer, 4> kOptimizers = {
      {{"sgd", -1.3, 0.02}, {"adam", -3.0, 0.01}, {"adamw", -2.9, 0.0}, {"lion", -3.9, 0.005}}};
  const std::string name = Text(p, "opt");
  const Optimizer& optimizer = *std::find_if(kOptimizers.begin(), kOptimizers.end(),
                                             [&](const Optimizer& o) { return name == o.name; });
  const double batch = Number(p, "log2_bs");
  const double depth = Number(p, "depth");
  const double best_rate = optimizer.log_rate + (name == "sgd" ? 1.0 : 0.5) * 0.30103 * (batch - 7);
  double value = 0.05 + optimizer.penalty;
  value += 0.08 * std::pow(std::log10(Number(p, "lr")) - best_rate, 2);
  const std::string activation = Text(p, "act");
  value += activation == "relu" ? 0.01 : activation == "tanh" ? 0.04 : 0.0;
  if (name == "sgd") value += 0.1 * std::pow(Number(p, "momentum") - 0.9, 2);
  if (name == "adam" || name == "adamw") {
    value += 0.01 * std::pow(std::log10(Number(p, "one_minus_beta2")) + 2.3, 2);
  }
  value += 0.003 * std::pow(depth - 6, 2) / 4;
  value += 0.02 * std::pow(std::log2(Number(p, "width")) - 8.5, 2) / 4;
  value += 0.15 * std::pow(Number(p, "dropout") - 0.15 - 0.02 * (depth - 6), 2);
  return value + 0.004 * std::pow(std::max(0.0, batch - 9), 2);
}

constexpr const char* kRecipeSpace = R"({
  "opt": {"_type": "choice", "_value": ["sgd", "adam", "adamw", "lion"]},
  "lr": {"_type": "loguniform", "_value": [1e-5, 1]},
  "log2_bs": {"_type": "randint", "_value": [4, 13]},
  "depth": {"_type": "randint", "_value": [1, 13]},
  "width": {"_type": "qloguniform", "_value": [16, 1024, 1]},
  "dropout": {"_type": "uniform", "_value": [0, 0.6]},
  "act": {"_type": "choice", "_value": ["relu", "gelu", "tanh"]},
  "momentum": {"_type": "uniform", "_value": [0, 0.99]},
  "one_minus_beta2": {"_type": "loguniform", "_value": [1e-4, 0.2]}
})";

constexpr const char* kBraninSpace = R"({
  "x": {"_type": "uniform", "_value": [-5, 10]}, "y": {"_type": "uniform", "_value": [0, 15]}})";

}  // namespace

const std::vector<TestFunction>& TestFunctions() {
  static const std::vector<TestFunction> functions = {
      {"branin", kBraninSpace, Branin, 0.3979},
      {"hartmann6", Box(6, "[0, 1]"), Hartmann6, -3.3224},
      {"ackley10", Box(10, "[-32.768, 32.768]"), Ackley10, 0},
      {"rosenbrock5", Box(5, "[-5, 10]"), Rosenbrock5, 0},
      {"recipe", kRecipeSpace, Recipe, 0.05}};
  return functions;
}

const TestFunction& FunctionNamed(const std::string& name) {
  for (const TestFunction& function : TestFunctions()) {
    if (function.name == name) return function;
  }
  ESPALIER_CHECK(false, "no such test function: " + name);
}

double BestOf(const std::string& sampler_name, const Options& options, const TestFunction& function,
              int trials, std::uint64_t seed) {
  const SearchSpace space = *SearchSpace::FromJson(function.space_json);
  const std::unique_ptr<Sampler> sampler = *MakeSampler(sampler_name, options);
  std::deque<Parameters> tried;  // a deque: the observations point into it
  std::vector<Observation> ended;
  double best = std::numeric_limits<double>::infinity();
  for (std::int64_t number = 0; number < trials; ++number) {
    Random random(MixSeed(seed, static_cast<std::uint64_t>(number)));
    const auto suggestion =
        sampler->Suggest({space, Direction::kMinimize, ended, {}, number}, random);
    if (!suggestion) break;
    tried.push_back(*suggestion);
    const double value = function.value(tried.back());
    best = std::min(best, value);
    ended.push_back({number, &tried.back(), value, false, 1});
  }
  return best;
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
