#include "tuner/core/population/perturbation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

namespace espalier {
namespace {

SearchSpace SpaceOf(const char* json) {
  auto space = SearchSpace::FromJson(json);
  EXPECT_TRUE(space.ok()) << space.status();
  return *space;
}

constexpr char kSpace[] = R"json({
  "lr": {"_type": "loguniform", "_value": [0.001, 1]},
  "layers": {"_type": "randint", "_value": [1, 9]},
  "momentum": {"_type": "quniform", "_value": [0, 1, 0.1]},
  "noise": {"_type": "normal", "_value": [0, 1]},
  "batch": {"_type": "choice", "_value": [16, 32, 64, 128]},
  "net": {"_type": "choice", "_value": [{"_name": "deep", "width": {"_type": "randint",
          "_value": [1, 5]}}, {"_name": "flat"}]}})json";

Parameters Start() {
  return {{"lr", 0.1},     {"layers", std::int64_t{5}}, {"momentum", 0.5},
          {"noise", -2.0}, {"batch", std::int64_t{16}}, {"net", std::string("flat")}};
}

constexpr int kDraws = 20000;

// Five standard deviations of how often what has this probability happens.
double Tolerance(double p) { return 5 * std::sqrt(p * (1 - p) / kDraws); }

// How often each value comes, by its text.
std::map<std::string, double> SharesOf(const char* name, const Parameters& start,
                                       const PopulationSpec& perturbation, int draws = kDraws) {
  const SearchSpace space = SpaceOf(kSpace);
  EXPECT_TRUE(CheckPerturbation(perturbation, space).ok());
  Random random(11);
  std::map<std::string, double> shares;
  for (int i = 0; i < draws; ++i) {
    const Parameters changed = Perturb(perturbation, space, start, random);
    EXPECT_TRUE(space.Validate(changed).ok()) << space.Validate(changed);
    shares[ToDisplay(*Find(changed, name))] += 1.0 / draws;
  }
  return shares;
}

TEST(Perturbation, ChoiceGoesToANeighbourOrIsDrawnAnew) {
  // At the lower end: half of what is not drawn anew stays.
  auto shares = SharesOf("batch", Start(), {.parameters = {"batch"}});
  EXPECT_NEAR(shares["16"], 0.0625 + 0.375, Tolerance(0.4375));
  EXPECT_NEAR(shares["32"], 0.0625 + 0.375, Tolerance(0.4375));
  EXPECT_NEAR(shares["64"], 0.0625, Tolerance(0.0625));
  EXPECT_NEAR(shares["128"], 0.0625, Tolerance(0.0625));
  Parameters inside = Start();
  inside[4].value = std::int64_t{64};
  shares = SharesOf("batch", inside, {.parameters = {"batch"}, .resample_probability = 0});
  EXPECT_EQ(shares.size(), 2U);
  EXPECT_NEAR(shares["32"], 0.5, Tolerance(0.5));
  EXPECT_NEAR(shares["128"], 0.5, Tolerance(0.5));
}

TEST(Perturbation, NumberIsMultipliedOrDrawnAnew) {
  const auto shares = SharesOf("lr", Start(), {.parameters = {"lr"}});
  EXPECT_NEAR(shares.at("0.08"), 0.375, Tolerance(0.375) + 0.001);
  EXPECT_NEAR(shares.at("0.12"), 0.375, Tolerance(0.375) + 0.001);
  EXPECT_GT(shares.size(), 1000U) << "a quarter is drawn from the whole range";
}

TEST(Perturbation, BoundsFractionsAndGridsAreKept) {
  const auto values = [](const char* name, const Parameters& start,
                         std::vector<double> factors = {0.8, 1.2}) {
    std::set<std::string> texts;
    for (const auto& [text, share] :
         SharesOf(name, start,
                  {.parameters = {name}, .resample_probability = 0, .factors = std::move(factors)},
                  /*draws=*/100)) {
      texts.insert(text);
    }
    return texts;
  };
  using Texts = std::set<std::string>;
  EXPECT_EQ(values("layers", Start()), (Texts{"4", "6"}));
  Parameters three = Start();
  three[1].value = std::int64_t{3};
  EXPECT_EQ(values("layers", three), (Texts{"2", "3"}));  // 2.4 and 3.6
  EXPECT_EQ(values("layers", Start(), {0.01, 1e300}), (Texts{"1", "8"}));
  EXPECT_EQ(values("lr", Start(), {1e-9, 1e9}), (Texts{"0.001", "1"}));
  EXPECT_EQ(values("momentum", Start(), {0.9, 1.3}), (Texts{"0.4", "0.6"}));  // 0.45 and 0.65
  EXPECT_EQ(values("noise", Start()), (Texts{"-1.6", "-2.4"}));
}

TEST(Perturbation, ChangesNothingElse) {
  const SearchSpace space = SpaceOf(kSpace);
  Random random(3);
  const Parameters changed = Perturb({.parameters = {"lr"}}, space, Start(), random);
  const Parameters start = Start();
  for (std::size_t i = 1; i < start.size(); ++i) EXPECT_EQ(changed[i], start[i]);
}

TEST(Perturbation, DrawsAnewWhatTheSpaceDoesNotContain) {
  Parameters start = Start();
  start[4].value = std::int64_t{99};
  const auto shares =
      SharesOf("batch", start, {.parameters = {"batch"}, .resample_probability = 0});
  ASSERT_EQ(shares.size(), 4U);
  for (const auto& [text, share] : shares) EXPECT_NEAR(share, 0.25, Tolerance(0.25)) << text;
}

TEST(Perturbation, RefusesByName) {
  const SearchSpace space = SpaceOf(kSpace);
  const auto refusal = [&space](const PopulationSpec& perturbation) {
    return std::string(CheckPerturbation(perturbation, space).message());
  };
  EXPECT_EQ(refusal({.parameters = {"lrr"}}),
            "\"population\": parameter \"lrr\" is not in the search space");
  EXPECT_EQ(
      refusal({.parameters = {"net"}}),
      "\"population\": parameter \"net\" brings parameters of its own, and cannot change during "
      "a trial");
  EXPECT_EQ(
      refusal({.parameters = {"net/deep/width"}}),
      "\"population\": parameter \"net/deep/width\" depends on \"net\", and members that differ "
      "in it cannot take it over");
  EXPECT_EQ(
      refusal({.parameters = {}}),
      "\"population\": \"parameters\" needs the names of those that may change during a trial, "
      "got none");
  EXPECT_EQ(refusal({.parameters = {"lr", "lr"}}),
            "\"population\": parameter \"lr\" is named twice");
  EXPECT_EQ(refusal({.parameters = {"lr"}, .resample_probability = NAN}),
            "\"population\": \"resample_probability\" needs a number from 0 to 1, got nan");
  EXPECT_EQ(refusal({.parameters = {"lr"}, .factors = {0.8, 0}}),
            "\"population\": \"factors\" needs factors > 0, got 0");
  EXPECT_EQ(refusal({.parameters = {"lr"}, .factors = {}}),
            "\"population\": \"factors\" needs a factor at least, got none");
}

}  // namespace
}  // namespace espalier
