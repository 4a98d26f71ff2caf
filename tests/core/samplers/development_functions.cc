// Kinds of functions that the benchmark does not have: four of the noiseless and noisy testbeds of
// Hansen et al. 2009 (BBOB), moved and turned, with 5 to 40 parameters, and made-up spaces of
// integers, choices and nested choices.

#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/core/samplers/functions.h"

namespace espalier::testing {
namespace {

using Value = double (*)(const Parameters&);

// From where the function is least, 2.5 from the middle at the most.
std::vector<double> Moved(const Parameters& p) {
  std::vector<double> x = Numbers(p);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] -= 2.5 * std::sin(1.3 * static_cast<double>(i) + 0.7);
  }
  return x;
}

// The same on axes that lie across those of the space.
std::vector<double> Turned(const Parameters& p) {
  std::vector<double> x = Moved(p);
  for (const double frequency : {0.9, 1.7, 2.3}) {
    std::vector<double> normal(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      normal[i] = std::cos(frequency * static_cast<double>(i + 1));
    }
    Reflect(normal, x);
  }
  return x;
}

// From 0 to 1 over the axes.
double Along(std::size_t i, std::size_t axes) {
  return static_cast<double>(i) / static_cast<double>(axes - 1);
}

// f3: many peaks on a grid along the parameters.
double Rastrigin(const Parameters& p) {
  double sum = 0;
  for (const double x : Moved(p)) sum += x * x + 10 - 10 * std::cos(2 * std::numbers::pi * x);
  return sum;
}

// f14: axes grow less important the nearer the least value is.
double DifferentPowers(const Parameters& p) {
  const std::vector<double> x = Turned(p);
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    sum += std::pow(std::abs(x[i]), 2 + 4 * Along(i, x.size()));
  }
  return std::sqrt(sum);
}

// f13: a ridge on which the way leads down slowly.
double SharpRidge(const Parameters& p) {
  const std::vector<double> x = Turned(p);
  double sum = 0;
  for (std::size_t i = 1; i < x.size(); ++i) sum += x[i] * x[i];
  return x[0] * x[0] + 100 * std::sqrt(sum);
}

// f19: a curved valley with many peaks.
double GriewankRosenbrock(const Parameters& p) {
  const std::vector<double> x = Turned(p);
  double sum = 0;
  for (std::size_t i = 0; i + 1 < x.size(); ++i) {
    const double z = x[i] + 1;
    const double next = x[i + 1] + 1;
    const double s = 100 * std::pow(z * z - next, 2) + std::pow(z - 1, 2);
    sum += s / 4000 - std::cos(s) + 1;
  }
  return 10 * sum / static_cast<double>(x.size() - 1);
}

// Whole numbers that depend on one another.
double Counts(const Parameters& p) {
  std::vector<double> x = Numbers(p);
  std::vector<double> normal(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] -= 10 + std::round(8 * std::sin(2.1 * static_cast<double>(i)));
    normal[i] = 1 + static_cast<double>(i % 3);
  }
  Reflect(normal, x);
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    sum += std::pow(10, 2 * Along(i, x.size())) * x[i] * x[i];
  }
  return sum;
}

// A cost of each option, of options together, and numbers whose best place the options move.
double Tables(const Parameters& p) {
  double sum = 0;
  int last = 0;
  for (int i = 0; i < 6; ++i) {
    const int option = Text(p, absl::StrCat("c", i))[0] - 'a';
    const int best = (3 * i + 1) % 5;
    sum += option == best ? 0 : 0.3 + 0.2 * ((2 * option + i) % 4);
    if (option != best && last == option) sum += 0.5;
    const std::string number = absl::StrCat("x", i);
    if (i < 4) sum += 4 * std::pow(Number(p, number) - 0.3 - 0.1 * ((option + i) % 5), 2);
    last = option;
  }
  return sum;
}

// How far a number's logarithm is from that of the best one, squared.
double Apart(const Parameters& p, const std::string& name, double best) {
  return std::pow(std::log10(Number(p, name) / best), 2);
}

double Pipeline(const Parameters& p) {
  const std::string model = Text(p, "model");
  const std::string scaler = Text(p, "scaler");
  double value = scaler == "robust" ? 0 : scaler == "standard" ? 0.01 : 0.04;
  value += 0.02 * Apart(p, "components", 20);
  if (model == "linear") {
    const double share = Number(p, "model/linear/share");
    return value + 0.15 + 0.01 * Apart(p, "model/linear/alpha", 1e-3) + 0.05 * share * share;
  }
  if (model == "kernel") {
    const double log_c = std::log10(Number(p, "model/kernel/c"));
    const double log_width = std::log10(Number(p, "model/kernel/width"));
    const double valley = std::pow(log_width + 1 + 0.6 * log_c, 2);
    return value + 0.1 + 0.03 * valley + 0.004 * std::pow(log_c - 1, 2);
  }
  const double features = Number(p, "model/trees/features");
  return value + 0.08 + 0.02 * Apart(p, "model/trees/count", 400) +
         0.0008 * std::pow(Number(p, "model/trees/depth") - 9, 2) +
         0.0006 * std::pow(Number(p, "model/trees/leaf") - 3, 2) +
         0.1 * std::pow(features - 0.4, 2);
}

std::string CountsSpace() {
  std::string json = "{";
  for (int i = 0; i < 10; ++i) {
    absl::StrAppend(&json, i > 0 ? ", " : "", "\"n", i,
                    R"json(": {"_type": "randint", "_value": [0, 21]})json");
  }
  return json + "}";
}

std::string TablesSpace() {
  std::string json = "{";
  for (int i = 0; i < 6; ++i) {
    absl::StrAppend(&json, i > 0 ? ", " : "", "\"c", i,
                    R"json(": {"_type": "choice", "_value": ["a", "b", "c", "d", "e"]})json");
  }
  for (int i = 0; i < 4; ++i) {
    absl::StrAppend(&json, ", \"x", i, R"json(": {"_type": "uniform", "_value": [0, 1]})json");
  }
  return json + "}";
}

constexpr const char* kPipelineSpace = R"json({
  "scaler": {"_type": "choice", "_value": ["none", "standard", "robust"]},
  "components": {"_type": "qloguniform", "_value": [2, 200, 1]},
  "model": {"_type": "choice", "_value": [
    {"_name": "linear", "alpha": {"_type": "loguniform", "_value": [1e-6, 1]},
     "share": {"_type": "uniform", "_value": [0, 1]}},
    {"_name": "kernel", "c": {"_type": "loguniform", "_value": [1e-3, 1e3]},
     "width": {"_type": "loguniform", "_value": [1e-5, 10]}},
    {"_name": "trees", "count": {"_type": "qloguniform", "_value": [10, 2000, 1]},
     "depth": {"_type": "randint", "_value": [2, 21]},
     "leaf": {"_type": "randint", "_value": [1, 30]},
     "features": {"_type": "uniform", "_value": [0.1, 1]}}]}
})json";

void AddOf(std::vector<TestFunction>& functions, const std::string& name, Value value) {
  for (const int axes : {5, 10, 20, 40}) {
    functions.push_back({absl::StrCat(name, axes), Box(axes, "[-5, 5]"), value, 0});
  }
}

std::vector<TestFunction> Made() {
  std::vector<TestFunction> functions;
  AddOf(functions, "rastrigin", Rastrigin);
  AddOf(functions, "different_powers", DifferentPowers);
  AddOf(functions, "sharp_ridge", SharpRidge);
  AddOf(functions, "griewank_rosenbrock", GriewankRosenbrock);
  functions.push_back({"different_powers10_noisy", Box(10, "[-5, 5]"), DifferentPowers, 0, 1.0});
  functions.push_back({"different_powers5_noisy", Box(5, "[-5, 5]"), DifferentPowers, 0, 0.5});
  functions.push_back({"rastrigin5_noisy", Box(5, "[-5, 5]"), Rastrigin, 0, 5.0});
  functions.push_back({"counts10", CountsSpace(), Counts, 0});
  functions.push_back({"counts10_noisy", CountsSpace(), Counts, 0, 300});
  functions.push_back({"tables10", TablesSpace(), Tables, 0});
  functions.push_back({"pipeline", kPipelineSpace, Pipeline, 0.08});
  functions.push_back({"tables10_noisy", TablesSpace(), Tables, 0, 0.2});
  functions.push_back({"pipeline_noisy", kPipelineSpace, Pipeline, 0.08, 0.01});
  return functions;
}

}  // namespace

const std::vector<TestFunction>& DevelopmentFunctions() {
  static const std::vector<TestFunction> functions = Made();
  return functions;
}

}  // namespace espalier::testing
