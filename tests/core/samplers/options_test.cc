#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tuner/core/samplers/sampler.h"

namespace espalier {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string ErrorOf(const std::string& name, const Options& options) {
  return std::string(MakeSampler(name, options).status().message());
}

TEST(SamplerTable, NamesItsRows) {
  EXPECT_THAT(Samplers().Names(),
              ElementsAre("random", "grid", "tpe", "nsga2", "nsga3", "cmaes", "qmc", "brute_force",
                          "gp", "auto", "optuna", "queue"));
}

TEST(SamplerTable, UnknownNamesListTheKnown) {
  EXPECT_EQ(ErrorOf("tpee", {}),
            "sampler \"tpee\" is unknown; known are random, grid, tpe, nsga2, nsga3, cmaes, "
            "qmc, brute_force, gp, auto, optuna, queue");
  EXPECT_EQ(ErrorOf("grid", {{"pionts", 3}}),
            "sampler \"grid\" has no option \"pionts\"; it has points");
  EXPECT_THAT(ErrorOf("random", {{"a", 1}}), HasSubstr("it takes none"));
}

TEST(SamplerTable, OptionsStayInTheirRange) {
  EXPECT_EQ(ErrorOf("grid", {{"points", 0}}),
            "sampler \"grid\": option \"points\" needs a whole number from 1 to 1000, got 0");
  EXPECT_THAT(ErrorOf("tpe", {{"candidates", 2.5}}), HasSubstr("a whole number"));
  EXPECT_THAT(ErrorOf("tpe", {{"gamma", std::numeric_limits<double>::quiet_NaN()}}),
              HasSubstr("a number from"));
  EXPECT_EQ(ErrorOf("tpe", {{"multivariate", 2}}),
            "sampler \"tpe\": option \"multivariate\" needs true or false, got 2");
  EXPECT_EQ(ErrorOf("tpe", {{"multivariate", 0}}), "");
  EXPECT_EQ(ErrorOf("tpe", {{"multivariate", true}}), "");
  EXPECT_EQ(ErrorOf("tpe", {{"startup_trials", 0}, {"gamma", 0.25}}), "");
}

}  // namespace
}  // namespace espalier
