// Trials of another study, as the samplers that take them learn from them.

#include "tuner/core/samplers/before.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "tests/core/samplers/functions.h"
#include "tuner/core/samplers/gp/gaussian_process.h"
#include "tuner/core/samplers/sampler.h"
#include "tuner/core/samplers/tpe/before_trials.h"

namespace espalier::samplers {
namespace {

using espalier::testing::Number;

const char* const kSides = R"({"x": {"_type": "uniform", "_value": [0, 1]},
                             "y": {"_type": "uniform", "_value": [0, 1]}})";
const char* const kEveryKind = R"({"c": {"_type": "choice", "_value": ["p", "q", "r"]},
    "b": {"_type": "choice", "_value": [32, 64, 128]},
    "n": {"_type": "choice", "_value": [
      {"_name": "a", "p": {"_type": "uniform", "_value": [0, 1]}}, {"_name": "b"}]},
    "i": {"_type": "randint", "_value": [0, 5]}, "qu": {"_type": "quniform", "_value": [0, 1, 0.3]},
    "lu": {"_type": "loguniform", "_value": [1e-6, 1]},
    "ln": {"_type": "lognormal", "_value": [0, 3]}})";

std::unique_ptr<Sampler> Made(const std::string& name) {
  Options options;
  if (name == "gp") options = {{"local_searches", 4}, {"preliminary_samples", 64}};
  return *MakeSampler(name, options);
}

double FarFrom(const Parameters& parameters, double x, double y) {
  return std::hypot(Number(parameters, "x") - x, Number(parameters, "y") - y);
}

// So many trials of another study, drawn at random and scored by a loss.
template <typename Loss>
std::vector<ScoredTrial> Elsewhere(const SearchSpace& space, int trials, const Loss& loss) {
  Random random(5);
  std::vector<ScoredTrial> before;
  for (int i = 0; i < trials; ++i) before.push_back({space.Sample(random), 0});
  std::stable_sort(before.begin(), before.end(), [&](const ScoredTrial& a, const ScoredTrial& b) {
    return loss(a.parameters) < loss(b.parameters);
  });
  const double best = loss(before.front().parameters);
  const double median = loss(before[before.size() / 2].parameters);
  for (ScoredTrial& trial : before) {
    trial.score = (median - loss(trial.parameters)) / (median - best);
  }
  return before;
}

struct StudyLike {
  SearchSpace space;
  std::vector<ScoredTrial> before{};
  std::deque<Parameters> tried{};
  std::vector<Observation> ended{};
  std::vector<const Parameters*> running{};

  std::optional<Parameters> Ask(const Sampler& sampler) const {
    const auto number = static_cast<std::int64_t>(tried.size());
    Random random(MixSeed(3, static_cast<std::uint64_t>(number)));
    return sampler.Suggest({.space = space,
                            .direction = Direction::kMinimize,
                            .ended = ended,
                            .running = running,
                            .trial_number = number,
                            .study_seed = 7,
                            .before = before},
                           random);
  }
  void End(Parameters parameters, double value) {
    const auto number = static_cast<std::int64_t>(tried.size());
    tried.push_back(std::move(parameters));
    ended.push_back({.trial_number = number, .parameters = &tried.back(), .value = value});
  }
  void Start(Parameters parameters) {
    tried.push_back(std::move(parameters));
    running.push_back(&tried.back());
  }
};

StudyLike LikeOneGoodAt(double x, double y, int trials = 60) {
  StudyLike study{.space = *SearchSpace::FromJson(kSides)};
  study.before = Elsewhere(study.space, trials,
                           [&](const Parameters& p) { return 1e6 + 1e3 * FarFrom(p, x, y); });
  return study;
}

TEST(Before, MovesFirstSuggestionsToWhereTheOtherStudyWasGood) {
  for (const char* name : {"tpe", "gp", "cmaes"}) {
    const auto sampler = Made(name);
    StudyLike study = LikeOneGoodAt(0.8, 0.2);
    double sum = 0;
    for (int i = 0; i < 6; ++i) {
      Parameters next = *study.Ask(*sampler);
      sum += FarFrom(next, 0.8, 0.2);
      const double value = 5 + FarFrom(next, 0.8, 0.2);
      study.End(std::move(next), value);
    }
    EXPECT_LT(sum / 6, 0.25) << name << ": at random 0.6 is to be expected";
  }
}

TEST(Before, TellsTrialsApartThatAreAskedForTogether) {
  for (const char* name : {"tpe", "gp", "cmaes"}) {
    const auto sampler = Made(name);
    StudyLike study = LikeOneGoodAt(0.8, 0.2);
    for (int i = 0; i < 4; ++i) study.Start(*study.Ask(*sampler));
    for (std::size_t i = 1; i < study.tried.size(); ++i) {
      EXPECT_GT(FarFrom(study.tried[0], Number(study.tried[i], "x"), Number(study.tried[i], "y")),
                1e-3)
          << name;
    }
  }
}

TEST(Before, LeavesWhereAllTrialsFail) {
  for (const char* name : {"tpe", "gp"}) {
    const auto sampler = Made(name);
    StudyLike study = LikeOneGoodAt(0.8, 0.2);
    double farthest = 0;
    for (int i = 0; i < 40; ++i) {
      Parameters next = *study.Ask(*sampler);
      farthest = std::max(farthest, FarFrom(next, 0.8, 0.2));
      study.End(std::move(next), std::nan(""));
    }
    EXPECT_GT(farthest, 0.3) << name;
  }
}

// Two objectives whose front is where y is 0.8, whatever x.
struct LikeOneOfTwo {
  LikeOneOfTwo() : study{.space = *SearchSpace::FromJson(kSides)} {
    study.before = Elsewhere(study.space, 60, [](const Parameters& p) { return Off(p); });
    for (ScoredTrial& trial : study.before) {
      const auto [first, second] = ValuesOf(trial.parameters);
      trial.score = 1 - 2 * first;
      trial.other_scores = {1 - 2 * second};
    }
  }

  static double Off(const Parameters& p) { return std::abs(Number(p, "y") - 0.8); }
  static std::pair<double, double> ValuesOf(const Parameters& p) {
    return {Number(p, "x") + Off(p), 1 - Number(p, "x") + Off(p)};
  }
  Parameters Ask(const Sampler& sampler) const {
    const auto number = static_cast<std::int64_t>(study.tried.size());
    const std::vector<Direction> others = {Direction::kMinimize};
    Random random(MixSeed(3, static_cast<std::uint64_t>(number)));
    return *sampler.Suggest({.space = study.space,
                             .direction = Direction::kMinimize,
                             .ended = study.ended,
                             .running = study.running,
                             .trial_number = number,
                             .other_directions = others,
                             .study_seed = 7,
                             .before = study.before},
                            random);
  }
  void End(Parameters parameters, bool fails = false) {
    const auto [first, second] = ValuesOf(parameters);
    values.push_back(second);
    study.End(std::move(parameters), fails ? std::nan("") : first);
    study.ended.back().other_values = std::span(&values.back(), 1);
  }

  StudyLike study;
  std::deque<double> values{};
};

TEST(Before, MovesFirstSuggestionsToTheFrontOfTheOtherStudy) {
  for (const char* name : {"tpe", "gp", "nsga2", "nsga3", "auto"}) {
    const auto sampler = Made(name);
    LikeOneOfTwo two;
    double off = 0;
    double least = 1;
    double most = 0;
    for (int i = 0; i < 8; ++i) {
      Parameters next = two.Ask(*sampler);
      EXPECT_EQ(two.Ask(*Made(name)), next) << name;
      if (i % 2 == 0) off += LikeOneOfTwo::Off(next) / 4;  // others of nsga2's are drawn
      least = std::min(least, Number(next, "x"));
      most = std::max(most, Number(next, "x"));
      two.End(std::move(next));
    }
    EXPECT_LT(off, 0.17) << name << ": at random 0.34 is to be expected";
    EXPECT_GT(most - least, 0.3) << name << ": along the front";
  }
}

TEST(Before, OfSeveralObjectivesTellsRunningTrialsApartAndLeavesWhereAllFail) {
  for (const char* name : {"tpe", "gp"}) {
    const auto sampler = Made(name);
    LikeOneOfTwo two;
    for (int i = 0; i < 4; ++i) two.study.Start(two.Ask(*sampler));
    for (std::size_t i = 1; i < two.study.tried.size(); ++i) {
      EXPECT_GT(FarFrom(two.study.tried[0], Number(two.study.tried[i], "x"),
                        Number(two.study.tried[i], "y")),
                1e-3)
          << name;
    }
    LikeOneOfTwo failing;
    double farthest = 0;
    for (int i = 0; i < 30; ++i) {
      Parameters next = failing.Ask(*sampler);
      farthest = std::max(farthest, LikeOneOfTwo::Off(next));
      failing.End(std::move(next), true);
    }
    EXPECT_GT(farthest, 0.2) << name;
  }
}

double BestAfter(const std::string& name, StudyLike study, int trials) {
  const auto sampler = Made(name);
  double best = 2;
  for (int i = 0; i < trials; ++i) {
    Parameters next = *study.Ask(*sampler);
    const double value = FarFrom(next, 0.8, 0.2);
    best = std::min(best, value);
    study.End(std::move(next), value);
  }
  return best;
}

TEST(Before, IsForgivenWhereTheOtherStudyWasUnlike) {
  EXPECT_LT(BestAfter("tpe", LikeOneGoodAt(0.1, 0.9), 80), 0.05);
  EXPECT_LT(BestAfter("gp", LikeOneGoodAt(0.1, 0.9), 25), 0.05);
  EXPECT_LT(BestAfter("cmaes", LikeOneGoodAt(0.1, 0.9), 150), 0.05);
}

TEST(Before, LeavesFreeWhatTheOtherStudyDoesNotHave) {
  for (const char* name : {"tpe", "gp", "cmaes"}) {
    StudyLike study = LikeOneGoodAt(0.8, 0.2);
    for (ScoredTrial& trial : study.before) trial.parameters.pop_back();
    const auto sampler = Made(name);
    double off = 0;
    double least = 1;
    double most = 0;
    for (int i = 0; i < 12; ++i) {
      Parameters next = *study.Ask(*sampler);
      off += std::abs(Number(next, "x") - 0.8) / 12;
      least = std::min(least, Number(next, "y"));
      most = std::max(most, Number(next, "y"));
      study.Start(std::move(next));
    }
    EXPECT_LT(off, 0.25) << name;
    EXPECT_GT(most - least, 0.3) << name;
  }
}

// Trials that lack some of the parameters, too.
StudyLike OfEveryKind() {
  StudyLike study{.space = *SearchSpace::FromJson(kEveryKind)};
  study.before = Elsewhere(study.space, 40, [](const Parameters& p) { return Number(p, "lu"); });
  for (std::size_t i = 0; i < study.before.size(); ++i) {
    Parameters& parameters = study.before[i].parameters;
    if (i % 3 == 1) parameters.erase(parameters.begin());
    if (i % 3 == 2) parameters.pop_back();
    if (i % 5 == 4) {
      std::erase_if(parameters, [](const Parameter& p) { return p.name == "n/a/p"; });
    }
  }
  return study;
}

TEST(Before, SuggestsOfEveryKindTheSameOnceMoreAndAfterOtherInputs) {
  for (const std::string& name : Samplers().Names()) {
    const auto sampler = Made(name);
    if (!sampler->draws() || sampler->outside() != nullptr) continue;
    StudyLike study = OfEveryKind();
    const StudyLike without{.space = study.space};
    for (int i = 0; i < 12; ++i) {
      std::optional<Parameters> next = study.Ask(*sampler);
      ASSERT_TRUE(next && study.space.Validate(*next).ok()) << name;
      EXPECT_TRUE(without.Ask(*sampler).has_value());
      EXPECT_EQ(study.Ask(*Made(name)), next) << name;
      EXPECT_EQ(study.Ask(*sampler), next) << name;
      const double value = Number(*next, "lu");
      study.End(*std::move(next), i % 4 == 2 ? std::nan("") : value);
    }
  }
}

TEST(Before, IsNothingToSamplersThatDoNotTakeIt) {
  int take = 0;
  for (const std::string& name : Samplers().Names()) {
    const auto sampler = Made(name);
    if (!sampler->draws() || sampler->outside() != nullptr) continue;
    const StudyLike with = OfEveryKind();
    const StudyLike without{.space = with.space};
    if (sampler->takes_like()) ++take;
    EXPECT_EQ(with.Ask(*sampler) == without.Ask(*sampler), !sampler->takes_like()) << name;
  }
  EXPECT_GE(take, 5);
  EXPECT_EQ(SamplersThat(&Sampler::takes_like).substr(0, 5), "\"tpe\"");
}

TEST(TrialsWithBefore, AreFewerTheMoreResultsThereAre) {
  StudyLike study = LikeOneGoodAt(0.8, 0.2, 100);
  const auto counts = [&] {
    const SamplerInput input{.space = study.space,
                             .direction = Direction::kMinimize,
                             .ended = study.ended,
                             .running = {},
                             .trial_number = 0,
                             .before = study.before};
    const TrialsWithBefore all(input, {});
    const std::size_t others = all.ended().size() - study.ended.size();
    std::size_t good = 0;
    for (std::size_t i = 0; i < others; ++i) {
      EXPECT_LT(all.ended()[i].trial_number, 0);
      if (all.split().sides[i] == TpeSplit::Side::kGood) ++good;
    }
    EXPECT_EQ(all.split().sides.size(), all.ended().size());
    EXPECT_EQ(all.split().results, study.ended.size());
    return std::pair(good, others - good);
  };
  EXPECT_EQ(counts(), std::pair(std::size_t{10}, std::size_t{90}));
  for (int i = 0; i < 20; ++i) study.End({{"x", 0.5}, {"y", 0.01 * i}}, i);
  EXPECT_EQ(counts(), std::pair(std::size_t{5}, std::size_t{45}));
  for (int i = 20; i < 4000; ++i) study.End({{"x", 0.5}, {"y", 1e-4 * i}}, i);
  EXPECT_EQ(counts(), std::pair(std::size_t{0}, std::size_t{0}));
}

// Two axes, one point each row.
gp::GaussianProcess ProcessOf(const gp::Points& points, const Eigen::VectorXd& values,
                              gp::Trend trend = {}) {
  gp::KernelParameters parameters{Eigen::Vector2d(3, 2), 1.3, 0.01};
  return {gp::Kernel({false, false}, parameters), points, values, points.rows(), std::move(trend)};
}

TEST(GaussianProcess, GoesByItsTrendWhereNothingWasObserved) {
  gp::Points others(3, 2);
  others << 0.1, 0.2, 0.5, 0.9, 0.8, 0.4;
  const auto other =
      std::make_shared<const gp::GaussianProcess>(ProcessOf(others, Eigen::Vector3d(1, -1, 0.5)));
  gp::Points points(2, 2);
  points << 0.2, 0.3, 0.7, 0.6;
  const gp::Trend trend{other, 0.25, 2};
  const gp::GaussianProcess process = ProcessOf(points, Eigen::Vector2d(3, -2), trend);
  gp::Points at(2, 2);
  at << 0.2, 0.3, 40, 40;  // the second is far from all
  EXPECT_NEAR(process.At(at).mean(0, 0), 3, 0.1);
  EXPECT_NEAR(process.At(at).mean(0, 1), 0.25, 1e-9);
  at.row(1) << 0.4, 0.45;
  const double expected = 0.25 + 2 * other->At(at).mean(0, 1);
  const gp::GaussianProcess as_expected = ProcessOf(points, trend.At(points), trend);
  EXPECT_NEAR(as_expected.At(at).mean(0, 1), expected, 1e-9);
  EXPECT_NEAR(as_expected.CoarseAt(at).mean(0, 1), expected, 1e-9);
  // Its gradient, and what it is once more is known.
  const auto made = process.DifferentiableAt(at);
  EXPECT_NEAR(made.posterior.mean(0, 1), process.At(at).mean(0, 1), 1e-12);
  const gp::Point gradient = process.Gradient(at, made, 1, Eigen::VectorXd::Constant(1, 1), 0);
  for (Eigen::Index axis = 0; axis < 2; ++axis) {
    constexpr double kStep = 1e-6;
    gp::Points beside = at;
    beside(0, axis) = at(1, axis) - kStep;
    beside(0, 1 - axis) = at(1, 1 - axis);
    beside(1, axis) = at(1, axis) + kStep;
    const Eigen::MatrixXd mean = process.At(beside).mean;
    EXPECT_NEAR(gradient[axis], (mean(0, 1) - mean(0, 0)) / (2 * kStep), 1e-6);
  }
  const gp::GaussianProcess given =
      process.Given(at.bottomRows(1), Eigen::MatrixXd::Constant(1, 1, 7), 1e-9);
  EXPECT_NEAR(given.At(at).mean(0, 1), 7, 1e-6);
}

}  // namespace
}  // namespace espalier::samplers
