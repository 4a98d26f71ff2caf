#include "tests/core/samplers/recipes.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "tests/core/samplers/functions.h"

namespace espalier::testing {

namespace {

double Square(double x) { return x * x; }

struct Optimizer {
  const char* name;
  double log_rate;
  double penalty;
};
constexpr std::array<Optimizer, 4> kOptimizers = {
    {{"sgd", -1.3, 0.02}, {"adam", -3.0, 0.01}, {"adamw", -2.9, 0.0}, {"lion", -3.9, 0.005}}};

// A parameter of the chosen optimizer, nested or not.
double OfOptimizer(const Parameters& p, const std::string& optimizer, const std::string& name) {
  const std::string nested = "opt/" + optimizer + "/" + name;
  return Number(p, Find(p, nested) != nullptr ? nested : name);
}

double SupportVectors(const Parameters& p) {
  const double log_c = std::log10(Number(p, "model/svm/c"));
  const std::string kernel = Text(p, "model/svm/kernel");
  if (kernel == "linear") return 0.15 + 0.01 * Square(log_c + 1);
  if (kernel == "poly") {
    return 0.12 + 0.008 * Square(Number(p, "model/svm/kernel/poly/degree") - 3) +
           0.01 * Square(log_c);
  }
  // A narrow valley: a larger C wants a smaller gamma.
  const double log_gamma = std::log10(Number(p, "model/svm/kernel/rbf/gamma"));
  return 0.08 + 0.03 * Square(log_gamma + 2 + 0.7 * (log_c - 1)) + 0.003 * Square(log_c - 1);
}

double Net(const Parameters& p) {
  double value = 0.06 + 0.04 * Square(std::log10(Number(p, "model/mlp/lr")) + 2.5) +
                 0.002 * Square(std::log10(Number(p, "model/mlp/alpha")) + 4);
  if (Text(p, "model/mlp/layers") == "one") {
    return value + 0.015 + 0.004 * Square(std::log2(Number(p, "model/mlp/layers/one/width")) - 8);
  }
  value += 0.004 * Square(std::log2(Number(p, "model/mlp/layers/two/first")) - 7);
  return value + 0.004 * Square(std::log2(Number(p, "model/mlp/layers/two/second")) - 5);
}

double Forest(const Parameters& p) {
  return 0.1 + 0.02 * Square(std::log10(Number(p, "model/forest/trees")) - 2.5) +
         0.0004 * Square(Number(p, "model/forest/depth") - 16) +
         0.1 * Square(Number(p, "model/forest/features") - 0.4);
}

}  // namespace

const char* const kRecipeSpace = R"json({
  "opt": {"_type": "choice", "_value": ["sgd", "adam", "adamw", "lion"]},
  "lr": {"_type": "loguniform", "_value": [1e-5, 1]},
  "log2_bs": {"_type": "randint", "_value": [4, 13]},
  "depth": {"_type": "randint", "_value": [1, 13]},
  "width": {"_type": "qloguniform", "_value": [16, 1024, 1]},
  "dropout": {"_type": "uniform", "_value": [0, 0.6]},
  "act": {"_type": "choice", "_value": ["relu", "gelu", "tanh"]},
  "momentum": {"_type": "uniform", "_value": [0, 0.99]},
  "one_minus_beta2": {"_type": "loguniform", "_value": [1e-4, 0.2]}
})json";

const char* const kNestedRecipeSpace = R"json({
  "opt": {"_type": "choice", "_value": [
    {"_name": "sgd", "momentum": {"_type": "uniform", "_value": [0, 0.99]}},
    {"_name": "adam", "one_minus_beta2": {"_type": "loguniform", "_value": [1e-4, 0.2]}},
    {"_name": "adamw", "one_minus_beta2": {"_type": "loguniform", "_value": [1e-4, 0.2]}},
    {"_name": "lion"}]},
  "lr": {"_type": "loguniform", "_value": [1e-5, 1]},
  "log2_bs": {"_type": "randint", "_value": [4, 13]},
  "depth": {"_type": "randint", "_value": [1, 13]},
  "width": {"_type": "qloguniform", "_value": [16, 1024, 1]},
  "dropout": {"_type": "uniform", "_value": [0, 0.6]},
  "act": {"_type": "choice", "_value": ["relu", "gelu", "tanh"]}
})json";

double Recipe(const Parameters& p) {
  const std::string name = Text(p, "opt");
  const Optimizer& optimizer = *std::find_if(kOptimizers.begin(), kOptimizers.end(),
                                             [&](const Optimizer& o) { return name == o.name; });
  const double batch = Number(p, "log2_bs");
  const double depth = Number(p, "depth");
  const double best_rate = optimizer.log_rate + (name == "sgd" ? 1.0 : 0.5) * 0.30103 * (batch - 7);
  double value = kRecipeOptimum + optimizer.penalty;
  value += 0.08 * Square(std::log10(Number(p, "lr")) - best_rate);
  const std::string activation = Text(p, "act");
  value += activation == "relu" ? 0.01 : activation == "tanh" ? 0.04 : 0.0;
  if (name == "sgd") value += 0.1 * Square(OfOptimizer(p, name, "momentum") - 0.9);
  if (name == "adam" || name == "adamw") {
    value += 0.01 * Square(std::log10(OfOptimizer(p, name, "one_minus_beta2")) + 2.3);
  }
  value += 0.003 * Square(depth - 6) / 4;
  value += 0.02 * Square(std::log2(Number(p, "width")) - 8.5) / 4;
  value += 0.15 * Square(Number(p, "dropout") - 0.15 - 0.02 * (depth - 6));
  return value + 0.004 * Square(std::max(0.0, batch - 9));
}

const char* const kClassifierSpace = R"json({
  "model": {"_type": "choice", "_value": [
    {"_name": "svm",
     "c": {"_type": "loguniform", "_value": [1e-3, 1e3]},
     "kernel": {"_type": "choice", "_value": [
       {"_name": "rbf", "gamma": {"_type": "loguniform", "_value": [1e-5, 10]}},
       {"_name": "poly", "degree": {"_type": "randint", "_value": [2, 6]}},
       {"_name": "linear"}]}},
    {"_name": "mlp",
     "lr": {"_type": "loguniform", "_value": [1e-5, 1]},
     "alpha": {"_type": "loguniform", "_value": [1e-7, 0.1]},
     "layers": {"_type": "choice", "_value": [
       {"_name": "one", "width": {"_type": "qloguniform", "_value": [8, 512, 1]}},
       {"_name": "two", "first": {"_type": "qloguniform", "_value": [8, 512, 1]},
                        "second": {"_type": "qloguniform", "_value": [8, 512, 1]}}]}},
    {"_name": "forest",
     "trees": {"_type": "qloguniform", "_value": [10, 1000, 1]},
     "depth": {"_type": "randint", "_value": [2, 33]},
     "features": {"_type": "uniform", "_value": [0.1, 1]}}]}
})json";

double Classifier(const Parameters& p) {
  const std::string model = Text(p, "model");
  if (model == "svm") return SupportVectors(p);
  return model == "mlp" ? Net(p) : Forest(p);
}

const char* const kBoostingSpace = R"json({
  "eta": {"_type": "loguniform", "_value": [1e-3, 1]},
  "rounds": {"_type": "qloguniform", "_value": [10, 2000, 1]},
  "depth": {"_type": "randint", "_value": [2, 13]},
  "min_child": {"_type": "qloguniform", "_value": [1, 64, 1]},
  "subsample": {"_type": "quniform", "_value": [0.25, 1, 0.05]},
  "columns": {"_type": "quniform", "_value": [0.2, 1, 0.1]},
  "lambda": {"_type": "loguniform", "_value": [1e-4, 100]}
})json";

double Boosting(const Parameters& p) {
  const double log_eta = std::log10(Number(p, "eta"));
  const double depth = Number(p, "depth");
  double value = kBoostingOptimum;
  value += 0.05 * Square(log_eta + std::log10(Number(p, "rounds")) - 1.3);  // few steps, or short
  value += 0.02 * Square(log_eta + 1.5);
  value += 0.002 * Square(depth - 6);
  value += 0.01 * Square(std::log2(Number(p, "min_child")) - 0.5 * depth);  // deep trees overfit
  value += 0.3 * Square(Number(p, "subsample") - 0.7);
  value += 0.1 * Square(Number(p, "columns") - 0.6);
  return value + 0.004 * Square(std::log10(Number(p, "lambda")));
}

const char* const kAugmentationSpace = R"json({
  "policy": {"_type": "choice", "_value": ["none", "flip", "crop", "cutout", "mixup"]},
  "schedule": {"_type": "choice", "_value": ["constant", "step", "cosine", "linear"]},
  "strength": {"_type": "randint", "_value": [0, 5]},
  "batch": {"_type": "choice", "_value": ["small", "medium", "large"]}
})json";

double Augmentation(const Parameters& p) {
  struct Policy {
    const char* name;
    double strength;
    double penalty;
  };
  constexpr std::array<Policy, 5> kPolicies = {{{"none", 0, 0.08},
                                                {"flip", 1, 0.05},
                                                {"crop", 2, 0.04},
                                                {"cutout", 4, 0.02},
                                                {"mixup", 3, 0.0}}};
  const std::string name = Text(p, "policy");
  const Policy& policy = *std::find_if(kPolicies.begin(), kPolicies.end(),
                                       [&](const Policy& each) { return name == each.name; });
  const std::string schedule = Text(p, "schedule");
  const std::string batch = Text(p, "batch");
  double value = kAugmentationOptimum + policy.penalty;
  value += 0.012 * Square(Number(p, "strength") - policy.strength);
  value += schedule == "constant" ? 0.05 : schedule == "step" ? 0.03 : 0.0;
  if (schedule == "linear") value += batch == "large" ? 0.0 : 0.02;
  if (schedule == "cosine") value += batch == "large" ? 0.025 : 0.0;
  return value + (batch == "small" ? 0.02 : batch == "large" ? 0.01 : 0.0);
}

}  // namespace espalier::testing
