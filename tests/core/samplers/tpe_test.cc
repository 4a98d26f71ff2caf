#include <gtest/gtest.h>

#include <cmath>
#include <deque>

#include "tests/core/samplers/functions.h"
#include "tuner/core/samplers/sampler.h"

namespace espalier {
namespace {

using testing::FunctionNamed;
using testing::MedianBest;

// The share of random search's distance to the optimum that TPE leaves.
double DistanceLeft(const std::string& function_name, const Options& options) {
  const auto& function = FunctionNamed(function_name);
  const double random = MedianBest("random", {}, function, 100, 9) - function.optimum;
  return (MedianBest("tpe", options, function, 100, 9) - function.optimum) / random;
}

TEST(Tpe, FindsMuchBetterPointsThanRandomSearch) {
  EXPECT_LT(DistanceLeft("branin", {}), 0.2);
  EXPECT_LT(DistanceLeft("hartmann6", {}), 0.25);
  EXPECT_LT(DistanceLeft("rosenbrock5", {}), 0.1);
  EXPECT_LT(DistanceLeft("recipe", {}), 0.4);
}

TEST(Tpe, IsBetterThanRandomSearchOneParameterAtATimeToo) {
  EXPECT_LT(DistanceLeft("hartmann6", {{"multivariate", 0}}), 0.5);
  EXPECT_LT(DistanceLeft("recipe", {{"multivariate", 0}}), 0.6);
}

// A line from 0 to 1 on which trials have been run evenly.
class Line {
 public:
  Line() : space_(*SearchSpace::FromJson(R"({"x": {"_type": "uniform", "_value": [0, 1]}})")) {}

  void End(double x, double value, bool pruned = false, std::int64_t last_step = 10) {
    parameters_.push_back({{"x", ParameterValue(x)}});
    ended_.push_back(
        {static_cast<std::int64_t>(ended_.size()), &parameters_.back(), value, pruned, last_step});
  }
  void Start(double x) {
    parameters_.push_back({{"x", ParameterValue(x)}});
    running_.push_back(&parameters_.back());
  }

  // The middle of many suggestions.
  double MeanSuggestion(Direction direction) const { return Suggestions(direction).first; }
  double ShareNear(double x, Direction direction) const { return Suggestions(direction, x).second; }

 private:
  std::pair<double, double> Suggestions(Direction direction, double near = 0) const {
    const std::unique_ptr<Sampler> tpe = *MakeSampler("tpe", {});
    constexpr int kSeeds = 200;
    double sum = 0;
    double close = 0;
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      Random random(seed);
      const auto suggestion = tpe->Suggest({space_, direction, ended_, running_, 99}, random);
      const double x = std::get<double>((*suggestion)[0].value);
      sum += x / kSeeds;
      close += std::abs(x - near) < 0.03 ? 1.0 / kSeeds : 0;
    }
    return {sum, close};
  }

  SearchSpace space_;
  std::deque<Parameters> parameters_;
  std::vector<Observation> ended_;
  std::vector<const Parameters*> running_;
};

TEST(Tpe, GoesWhereTheDirectionPoints) {
  Line line;
  for (int i = 0; i < 40; ++i) line.End((i + 0.5) / 40, i);
  EXPECT_LT(line.MeanSuggestion(Direction::kMinimize), 0.3);
  EXPECT_GT(line.MeanSuggestion(Direction::kMaximize), 0.7);
}

TEST(Tpe, RanksPrunedTrialsBehindCompleteOnes) {
  Line line;
  for (int i = 0; i < 20; ++i) line.End((i + 0.5) / 40, 100);
  for (int i = 20; i < 40; ++i) line.End((i + 0.5) / 40, 1, true);
  EXPECT_LT(line.MeanSuggestion(Direction::kMinimize), 0.4);
}

TEST(Tpe, RanksPrunedTrialsByHowFarTheyCame) {
  Line line;
  for (int i = 0; i < 40; ++i) line.End((i + 0.5) / 40, i, true, i + 1);
  EXPECT_GT(line.MeanSuggestion(Direction::kMinimize), 0.7);
}

TEST(Tpe, TakesAnInfinityOnTheBetterSideForNoValue) {
  for (const Direction direction : {Direction::kMinimize, Direction::kMaximize}) {
    const double sign = direction == Direction::kMinimize ? 1 : -1;
    const auto mean = [&](double of_half) {
      Line line;
      for (int i = 0; i < 20; ++i) line.End((i + 0.5) / 40, of_half);
      for (int i = 20; i < 40; ++i) line.End((i + 0.5) / 40, sign * (1 + i % 2));
      return line.MeanSuggestion(direction);
    };
    EXPECT_EQ(mean(-sign * INFINITY), mean(NAN));
    EXPECT_GT(mean(sign * INFINITY), 0.5);
    EXPECT_LT(mean(-sign), 0.3) << "as a number would attract it";
  }
}

TEST(Tpe, KeepsAwayFromFailedTrials) {
  Line without;
  for (int i = 20; i < 40; ++i) without.End((i + 0.5) / 40, 1 + i % 2);
  Line with;
  for (int i = 20; i < 40; ++i) with.End((i + 0.5) / 40, 1 + i % 2);
  for (int i = 0; i < 20; ++i) with.End((i + 0.5) / 40, std::nan(""));
  EXPECT_GT(with.MeanSuggestion(Direction::kMinimize),
            without.MeanSuggestion(Direction::kMinimize) + 0.1);
}

// A is good near p = 0.2 and B near q = 0.8, one of them better on the whole.
TEST(Tpe, ModelsAnOptionsParametersFromTheTrialsThatChoseIt) {
  const SearchSpace space = *SearchSpace::FromJson(R"({"n": {"_type": "choice", "_value": [
      {"_name": "A", "p": {"_type": "uniform", "_value": [0, 1]}},
      {"_name": "B", "q": {"_type": "uniform", "_value": [0, 1]}}]}})");
  const std::unique_ptr<Sampler> tpe = *MakeSampler("tpe", {});
  for (const bool a_is_better : {true, false}) {
    std::deque<Parameters> parameters;
    std::vector<Observation> ended;
    for (int i = 0; i < 60; ++i) {
      const int pair = i / 2;
      const double x = (pair + 0.5) / 30;
      const bool in_a = i % 2 == 0;
      parameters.push_back({{"n", in_a ? "A" : "B"}, {in_a ? "n/A/p" : "n/B/q", x}});
      const double loss = std::abs(x - (in_a ? 0.2 : 0.8)) + (in_a == a_is_better ? 0 : 10);
      ended.push_back({i, &parameters.back(), loss, false, 1});
    }
    double distance = 0;
    int better = 0;
    constexpr std::uint64_t kSeeds = 100;
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      Random random(seed);
      const auto drawn = tpe->Suggest({space, Direction::kMinimize, ended, {}, 60}, random);
      ASSERT_TRUE(space.Validate(*drawn).ok());
      const bool in_a = (*drawn)[0].value == ParameterValue("A");
      better += in_a == a_is_better ? 1 : 0;
      distance += std::abs(std::get<double>((*drawn)[1].value) - (in_a ? 0.2 : 0.8)) / kSeeds;
    }
    EXPECT_GT(better, 80);
    EXPECT_LT(distance, 0.1);
  }
}

// Whatever the machine, compiler and C library.
TEST(Tpe, SuggestsTheseValuesEverywhere) {
  const SearchSpace space = *SearchSpace::FromJson(R"({
    "u": {"_type": "uniform", "_value": [0, 1]}, "l": {"_type": "loguniform", "_value": [1e-5, 1]},
    "q": {"_type": "quniform", "_value": [0, 1, 0.25]},
    "n": {"_type": "normal", "_value": [0, 1]},
    "c": {"_type": "choice", "_value": ["x", "y", "z"]}})");
  Random drawing(3);
  std::deque<Parameters> parameters;
  std::vector<Observation> ended;
  for (int i = 0; i < 30; ++i) {
    parameters.push_back(space.Sample(drawing));
    ended.push_back(
        {i, &parameters.back(), std::get<double>(parameters.back()[0].value), false, 1});
  }
  const auto json = [&](const Options& options) {
    Random random(5);
    return ToJson(*(*MakeSampler("tpe", options))
                       ->Suggest({space, Direction::kMinimize, ended, {}, 30}, random));
  };
  EXPECT_EQ(json({}), R"({"u":0.029442208142239752,"l":1.8502368964999202e-05,"q":0.75,)"
                      R"("n":1.4789783067720745,"c":"y"})");
  EXPECT_EQ(json({{"bandwidth", "neighbors"}}),
            R"({"u":0.04147824038754017,"l":1.0297842511614837e-05,"q":0.75,)"
            R"("n":1.2742124188618729,"c":"y"})");
  EXPECT_EQ(json({{"multivariate", 0}}),
            R"({"u":0.0004751227130403886,"l":0.010875624681198803,"q":0.75,)"
            R"("n":1.8974493616084473,"c":"x"})");
}

TEST(Tpe, KeepsAwayFromRunningTrials) {
  Line line;
  for (int i = 0; i < 40; ++i) line.End((i + 0.5) / 40, std::abs(i - 20));
  const double before = line.ShareNear(0.5, Direction::kMinimize);
  for (int i = 0; i < 20; ++i) line.Start(0.5);
  EXPECT_LT(line.ShareNear(0.5, Direction::kMinimize), before - 0.2);
}

}  // namespace
}  // namespace espalier
