// What TPE's options change, and what the trials it is told of may be.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <limits>

#include "tuner/core/samplers/sampler.h"
#include "tuner/core/samplers/tpe/split.h"

namespace espalier {
namespace {

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

constexpr const char* kConditionalSpace = R"json({
  "u": {"_type": "uniform", "_value": [0, 1]}, "l": {"_type": "loguniform", "_value": [1e-5, 1]},
  "b": {"_type": "choice", "_value": [16, 32, 64, 128]},
  "c": {"_type": "choice", "_value": ["x", "y", "z"]},
  "n": {"_type": "choice", "_value": [
    {"_name": "A", "p": {"_type": "uniform", "_value": [0, 1]},
                   "q": {"_type": "randint", "_value": [0, 30]}},
    {"_name": "B"}]}})json";

// Trials that were drawn at random: complete, pruned, failed, and some that still run.
class DrawnTrials {
 public:
  explicit DrawnTrials(int trials, std::size_t objectives = 1)
      : space_(*SearchSpace::FromJson(kConditionalSpace)),
        others_(objectives - 1, Direction::kMaximize) {
    Random random(7);
    for (int i = 0; i < trials; ++i) {
      const Parameters& parameters = parameters_.emplace_back(space_.Sample(random));
      if (i % 9 == 8) {
        running_.push_back(&parameters);
        continue;
      }
      const double u = std::get<double>(parameters[0].value);
      Observation trial{.trial_number = i,
                        .parameters = &parameters,
                        .value = i % 7 == 3 ? kNoNumber : std::abs(u - 0.3),
                        .pruned = i % 5 == 2,
                        .last_step = i % 4};
      trial.other_values = values_.emplace_back(objectives - 1, u);
      ended_.push_back(trial);
    }
  }

  SamplerInput Input(std::size_t ended) const {
    return {.space = space_,
            .direction = Direction::kMinimize,
            .ended = std::span(ended_).first(ended),
            .running = running_,
            .trial_number = 1000,
            .other_directions = others_};
  }
  SamplerInput Input() const { return Input(ended_.size()); }
  std::vector<Observation>& ended() { return ended_; }
  std::vector<double>& ValuesOf(std::size_t i) { return values_[i]; }

 private:
  SearchSpace space_;
  std::vector<Direction> others_;
  std::deque<Parameters> parameters_;
  std::deque<std::vector<double>> values_;
  std::vector<Observation> ended_;
  std::vector<const Parameters*> running_;
};

// What is suggested with each of some seeds.
std::vector<std::string> Suggestions(const Sampler& sampler, const SamplerInput& input) {
  std::vector<std::string> drawn;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    Random random(seed);
    drawn.push_back(ToJson(*sampler.Suggest(input, random)));
  }
  return drawn;
}

std::vector<std::string> Suggestions(const Options& options, const SamplerInput& input) {
  return Suggestions(**MakeSampler("tpe", options), input);
}

TEST(TpeOptions, EachChangesWhatIsDrawn) {
  const DrawnTrials history(120);
  // Those that tell how wide kernels are by their neighbours are of that bandwidth alone.
  const Options neighbors = {{"bandwidth", "neighbors"}};
  const std::vector<std::string> by_default = Suggestions(neighbors, history.Input());
  EXPECT_NE(Suggestions(Options{}, history.Input()), by_default) << "bandwidth";
  for (const auto& [name, value] : {std::pair{"candidates", 5.0},
                                    {"gamma", 0.3},
                                    {"most_good", 3.0},
                                    {"multivariate", 0.0},
                                    {"group", 1.0},
                                    {"startup_trials", 500.0},
                                    {"constant_liar", 0.0},
                                    {"failed", 0.0},
                                    {"ordered", 0.0},
                                    {"prior_weight", 0.2},
                                    {"magic_clip", 0.0},
                                    {"endpoints", 1.0}}) {
    Options changed = neighbors;
    changed[name] = value;
    EXPECT_NE(Suggestions(changed, history.Input()), by_default) << name;
  }
  EXPECT_EQ(Suggestions({{"bandwidth", "neighbors"}, {"multivariate", 1}}, history.Input()),
            by_default);
}

TEST(TpeOptions, ModelsSeveralObjectivesEachAloneUnlessTold) {
  const DrawnTrials history(120, 2);
  const std::vector<std::string> by_default = Suggestions(Options{}, history.Input());
  EXPECT_EQ(Suggestions({{"multivariate", 0}}, history.Input()), by_default);
  EXPECT_NE(Suggestions({{"multivariate", 1}}, history.Input()), by_default);
  EXPECT_EQ(Suggestions({{"most_good", 1}}, history.Input()), by_default);
  EXPECT_EQ(Suggestions({{"group", 1}}, history.Input()),
            Suggestions({{"group", 1}, {"multivariate", 1}}, history.Input()));
}

TEST(TpeOptions, AGroupIsModelledTogether) {
  EXPECT_EQ(MakeSampler("tpe", {{"group", 1}, {"multivariate", 0}}).status().message(),
            "sampler \"tpe\": option \"multivariate\" needs true with group, got false");
}

TEST(Tpe, DrawsAlikeWhateverItWasAskedBefore) {
  DrawnTrials history(90);
  const std::unique_ptr<Sampler> used = *MakeSampler("tpe", {});
  const auto expect_alike = [&](const SamplerInput& input) {
    EXPECT_EQ(Suggestions(*used, input), Suggestions(Options{}, input));
  };
  std::vector<Observation>& ended = history.ended();
  for (std::size_t n = 20; n <= ended.size(); ++n) expect_alike(history.Input(n));
  // One that comes to an end late, one that runs again, one whose parameters were others.
  const Observation late = ended[30];
  ended.erase(ended.begin() + 30);
  expect_alike(history.Input());
  ended.insert(ended.begin() + 30, late);
  ended.erase(ended.begin() + 50);
  expect_alike(history.Input());
  ended[10].parameters = ended[60].parameters;
  expect_alike(history.Input());
  // In another order, and another study's.
  std::reverse(ended.begin(), ended.end());
  expect_alike(history.Input());
  expect_alike(DrawnTrials(40, 2).Input());
  const DrawnTrials many(500);
  expect_alike(many.Input(100));
  expect_alike(many.Input(120));
  expect_alike(many.Input());
  const SearchSpace other =
      *SearchSpace::FromJson(R"({"u": {"_type": "uniform", "_value": [0, 2]}})");
  SamplerInput input{.space = other,
                     .direction = Direction::kMinimize,
                     .ended = ended,
                     .running = {},
                     .trial_number = 7};
  expect_alike(input);
}

TEST(Tpe, TakesTrialsInAnyOrder) {
  DrawnTrials history(90);
  const std::vector<std::string> in_order = Suggestions(Options{}, history.Input());
  std::reverse(history.ended().begin(), history.ended().end());
  EXPECT_EQ(Suggestions(Options{}, history.Input()), in_order);
}

TEST(Tpe, PutsUpWithRepeatedPointsAndOutliers) {
  DrawnTrials drawn(200);
  std::vector<Observation>& ended = drawn.ended();
  for (std::size_t i = 0; i < ended.size(); ++i) {
    if (i % 3 != 0) ended[i].parameters = ended[0].parameters;
    if (i % 4 == 0) ended[i].value = i % 8 == 0 ? 1e300 : -1e300;
  }
  const SamplerInput input = drawn.Input();
  for (const Options& options :
       {Options{}, Options{{"magic_clip", 0}}, Options{{"prior_weight", 0}},
        Options{{"multivariate", 0}, {"magic_clip", 0}}}) {
    const std::unique_ptr<Sampler> tpe = *MakeSampler("tpe", options);
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      Random random(seed);
      const auto suggested = tpe->Suggest(input, random);
      ASSERT_TRUE(input.space.Validate(*suggested).ok()) << input.space.Validate(*suggested);
    }
  }
}

// Where the loss is least, and where it is least of what is allowed.
TEST(Tpe, KeepsToConstraints) {
  const SearchSpace space =
      *SearchSpace::FromJson(R"({"x": {"_type": "uniform", "_value": [0, 1]}})");
  for (const double broken : {0.5, kNoNumber}) {
    std::deque<Parameters> parameters;
    std::deque<std::vector<double>> constraints;
    std::vector<Observation> ended;
    for (int i = 0; i < 60; ++i) {
      const double x = (i * 37 % 60 + 0.5) / 60;
      parameters.push_back({{"x", x}});
      constraints.push_back({-1, x < 0.5 ? broken : -0.1});
      Observation trial{.trial_number = i, .parameters = &parameters.back(), .value = x};
      trial.constraints = constraints.back();
      ended.push_back(trial);
    }
    const std::unique_ptr<Sampler> tpe = *MakeSampler("tpe", {});
    double mean = 0;
    constexpr std::uint64_t kSeeds = 100;
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      Random random(seed);
      const auto drawn = tpe->Suggest({space, Direction::kMinimize, ended, {}, 60}, random);
      mean += std::get<double>((*drawn)[0].value) / kSeeds;
    }
    EXPECT_GT(mean, 0.45) << broken;
    EXPECT_LT(mean, 0.65) << broken;
  }
}

// A trial without a number for each objective is no better than one that failed.
TEST(Tpe, NeedsANumberForEachObjective) {
  const std::vector<std::string> all = Suggestions(Options{}, DrawnTrials(90, 2).Input());
  DrawnTrials lacking(90, 2);
  DrawnTrials failed(90, 2);
  for (std::size_t i = 0; i < 20; ++i) {
    if (i % 3 == 0) lacking.ended()[i].other_values = {};
    if (i % 3 == 1) lacking.ValuesOf(i) = {kNoNumber};
    if (i % 3 == 2) lacking.ValuesOf(i) = {std::numeric_limits<double>::infinity()};
    failed.ended()[i].value = kNoNumber;
  }
  EXPECT_EQ(Suggestions(Options{}, lacking.Input()), Suggestions(Options{}, failed.Input()));
  EXPECT_NE(Suggestions(Options{}, lacking.Input()), all);
}

// The front lies between where one is least and the other.
TEST(Tpe, DrawsNearTheFrontOfSeveralObjectives) {
  const SearchSpace space = *SearchSpace::FromJson(R"({"x": {"_type": "uniform", "_value": [0, 1]},
                                                       "y": {"_type": "uniform", "_value": [0, 1]}})");
  Random random(1);
  std::deque<Parameters> parameters;
  std::deque<std::vector<double>> others;
  std::vector<Observation> ended;
  for (int i = 0; i < 100; ++i) {
    const Parameters& drawn = parameters.emplace_back(space.Sample(random));
    const double x = std::get<double>(drawn[0].value);
    const double y = std::get<double>(drawn[1].value);
    Observation trial{.trial_number = i, .parameters = &drawn, .value = std::abs(x - 0.3) + y};
    others.push_back({-std::abs(x - 0.5) - y});
    trial.other_values = others.back();
    ended.push_back(trial);
  }
  const std::unique_ptr<Sampler> tpe = *MakeSampler("tpe", {});
  const std::vector<Direction> maximize = {Direction::kMaximize};
  int near = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Random drawing(seed);
    const auto drawn = tpe->Suggest({.space = space,
                                     .direction = Direction::kMinimize,
                                     .ended = ended,
                                     .running = {},
                                     .trial_number = 100,
                                     .other_directions = maximize},
                                    drawing);
    const double x = std::get<double>((*drawn)[0].value);
    const double y = std::get<double>((*drawn)[1].value);
    near += x > 0.25 && x < 0.55 && y < 0.2 ? 1 : 0;
  }
  EXPECT_GT(near, 60);
}

// Trials that run to their end beside many that are pruned are chosen already; were the share one
// of all, each of them would be good.
TEST(TpeSplit, WithSeveralObjectivesTheShareIsOfCompleteTrials) {
  const SearchSpace space =
      *SearchSpace::FromJson(R"({"x": {"_type": "uniform", "_value": [0, 1]}})");
  const Parameters parameters{{"x", 0.5}};
  std::deque<std::vector<double>> others;
  std::vector<Observation> ended;
  for (std::int64_t i = 0; i < 200; ++i) {
    const bool pruned = i % 10 != 0;
    Observation trial{.trial_number = i,
                      .parameters = &parameters,
                      .value = static_cast<double>(i),
                      .pruned = pruned,
                      .last_step = pruned ? 1 : 10};
    others.push_back({static_cast<double>(i)});
    if (!pruned) trial.other_values = others.back();
    ended.push_back(trial);
  }
  const std::vector<Direction> directions{Direction::kMinimize};
  const SamplerInput input{.space = space,
                           .direction = Direction::kMinimize,
                           .ended = ended,
                           .running = {},
                           .trial_number = 200,
                           .other_directions = directions};
  std::vector<std::size_t> good;
  const auto split = samplers::SplitTrials(input, {.gamma = 0.1});
  for (std::size_t i = 0; i < split.sides.size(); ++i) {
    if (split.sides[i] == samplers::TpeSplit::Side::kGood) good.push_back(i);
  }
  EXPECT_EQ(good, (std::vector<std::size_t>{0, 10}));
}

}  // namespace
}  // namespace espalier
