#include "tests/core/samplers/functions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "base/random.h"

namespace espalier::testing {
namespace {

// Where each is least.
const std::map<std::string, std::string> kBest = {
    {"branin", R"json({"x": 3.141592653589793, "y": 2.275})json"},
    {"hartmann6", R"json({"x0": 0.20169, "x1": 0.150011, "x2": 0.476874, "x3": 0.275332,
                          "x4": 0.311652, "x5": 0.6573})json"},
    {"ackley10", R"json({"x0": 3.3, "x1": 3.3, "x2": 3.3, "x3": 3.3, "x4": 3.3, "x5": 3.3,
                         "x6": 3.3, "x7": 3.3, "x8": 3.3, "x9": 3.3})json"},
    {"rosenbrock5", R"json({"x0": 1.0, "x1": 1.0, "x2": 1.0, "x3": 1.0, "x4": 1.0})json"},
    {"levy4", R"json({"x0": 1.0, "x1": 1.0, "x2": 1.0, "x3": 1.0})json"},
    {"ellipsoid8", R"json({"x0": 0.958851077208406, "x1": 1.6169928076391802,
                           "x2": -1.3755323183679475, "x3": -1.2625332757446432,
                           "x4": 1.7008732412571288, "x5": 0.8242369704835132,
                           "x6": -1.9132700325403758, "x7": -0.3312083508966188})json"},
    {"michalewicz5", R"json({"x0": 2.202906, "x1": 1.570796, "x2": 1.284992, "x3": 1.923058,
                             "x4": 1.72047})json"},
    {"styblinski_tang5", R"json({"x0": -2.903534, "x1": -2.903534, "x2": -2.903534,
                                 "x3": -2.903534, "x4": -2.903534})json"},
    {"recipe", R"json({"opt": "adamw", "lr": 0.0012589254117941662, "log2_bs": 7, "depth": 6,
                       "width": 362.0, "dropout": 0.15, "act": "gelu", "momentum": 0.5,
                       "one_minus_beta2": 0.005011872336272725})json"},
    {"mixed", R"json({"opt": "adamw", "opt/adamw/one_minus_beta2": 0.005011872336272725,
                      "lr": 0.0012589254117941662, "log2_bs": 7, "depth": 6, "width": 362.0,
                      "dropout": 0.15, "act": "gelu"})json"},
    {"classifier", R"json({"model": "mlp", "model/mlp/lr": 0.0031622776601683794,
                           "model/mlp/alpha": 0.0001, "model/mlp/layers": "two",
                           "model/mlp/layers/two/first": 128.0,
                           "model/mlp/layers/two/second": 32.0})json"},
    {"boosting", R"json({"eta": 0.03162277660168379, "rounds": 631.0, "depth": 6,
                         "min_child": 8.0, "subsample": 0.7, "columns": 0.6,
                         "lambda": 1.0})json"},
    {"augmentation", R"json({"policy": "mixup", "schedule": "cosine", "strength": 3,
                             "batch": "medium"})json"},
};

TEST(TestFunctions, AreLeastWhereTheyAreSaidToBe) {
  for (const TestFunction& function : TestFunctions()) {
    SCOPED_TRACE(function.name);
    const SearchSpace space = *SearchSpace::FromJson(function.space_json);
    const std::string name = function.noise > 0 ? "hartmann6" : function.name;
    const Parameters best = *ParametersFromJson(kBest.at(name));
    ASSERT_TRUE(space.Validate(best).ok()) << space.Validate(best);
    EXPECT_NEAR(function.value(best), function.optimum, 2e-6);
    Random random(1);
    for (int i = 0; i < 1000; ++i) {
      EXPECT_GE(function.value(space.Sample(random)), function.optimum - 1e-9);
    }
  }
}

Parameters WhereDevelopmentFunctionIsLeast(const TestFunction& function) {
  if (function.name.starts_with("pipeline")) {
    return *ParametersFromJson(R"json({"scaler": "robust", "components": 20.0, "model": "trees",
        "model/trees/count": 400.0, "model/trees/depth": 9, "model/trees/leaf": 3,
        "model/trees/features": 0.4})json");
  }
  if (function.name.starts_with("tables10")) {
    return *ParametersFromJson(R"json({"c0": "b", "c1": "e", "c2": "c", "c3": "a", "c4": "d",
        "c5": "b", "x0": 0.4, "x1": 0.3, "x2": 0.7, "x3": 0.6})json");
  }
  Parameters best;
  const SearchSpace space = *SearchSpace::FromJson(function.space_json);
  for (std::size_t i = 0; i < space.dimensions().size(); ++i) {
    const auto n = static_cast<double>(i);
    const std::string& name = space.dimensions()[i].name;
    if (function.name.starts_with("counts10")) {
      best.push_back({name, static_cast<std::int64_t>(10 + std::round(8 * std::sin(2.1 * n)))});
    } else {
      best.push_back({name, 2.5 * std::sin(1.3 * n + 0.7)});
    }
  }
  return best;
}

TEST(TestFunctions, OfDevelopmentAreLeastWhereTheyAreSaidToBe) {
  for (const TestFunction& function : DevelopmentFunctions()) {
    SCOPED_TRACE(function.name);
    const SearchSpace space = *SearchSpace::FromJson(function.space_json);
    const Parameters best = WhereDevelopmentFunctionIsLeast(function);
    ASSERT_TRUE(space.Validate(best).ok()) << space.Validate(best);
    EXPECT_NEAR(function.value(best), function.optimum, 1e-9);
    Random random(1);
    for (int i = 0; i < 100; ++i) {
      EXPECT_GE(function.value(space.Sample(random)), function.optimum);
    }
  }
}

TEST(TestFunctions, TellEachTrialOfAStudyNoiseOfItsOwn) {
  const TestFunction& noisy = FunctionNamed("hartmann6_noisy");
  const Parameters best = *ParametersFromJson(kBest.at("hartmann6"));
  EXPECT_EQ(ToldValue(noisy, best, 3, 4), ToldValue(noisy, best, 3, 4));
  EXPECT_NE(ToldValue(noisy, best, 3, 4), ToldValue(noisy, best, 3, 5));
  EXPECT_NE(ToldValue(noisy, best, 3, 4), ToldValue(noisy, best, 4, 4));
  double sum = 0;
  for (int i = 0; i < 1000; ++i) sum += ToldValue(noisy, best, 0, i) - noisy.value(best);
  EXPECT_NEAR(sum / 1000, 0, 4 * noisy.noise / 31.6);
}

}  // namespace
}  // namespace espalier::testing
