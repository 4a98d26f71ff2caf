// What populations come to where the best learning rate changes while they train: a noisy quadratic
// (Schaul, Zhang and LeCun, No More Pesky Learning Rates, ICML 2013, section 3), whose best rate
// falls with its error, to what the noise of the gradients makes of it.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <deque>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "base/random.h"
#include "tuner/core/population/bandit.h"
#include "tuner/core/population/perturbation.h"
#include "tuner/core/population/truncation.h"

namespace espalier {
namespace {

constexpr int kSeeds = 20;
constexpr int kSteps = 60;
constexpr int kInterval = 3;

// The second changes nothing, which a bandit has to find out.
SearchSpace Rates() {
  return *SearchSpace::FromJson(R"json({
      "lr": {"_type": "loguniform", "_value": [1e-4, 1]},
      "idle": {"_type": "uniform", "_value": [0, 1]}})json");
}

// The expected loss of stochastic gradient descent on x^2 / 2, whose gradients have a noise of
// variance 1.
class Training {
 public:
  // The loss as a program would report it, which has looked at some of the data.
  double Step(const Parameters& parameters, Random& random) {
    const double lr = *NumberOf(*Find(parameters, "lr"));
    squared_ = (1 - lr) * (1 - lr) * squared_ + lr * lr;
    return loss() * (1 + 0.02 * random.Normal());
  }
  double loss() const { return 0.5 * squared_; }

 private:
  double squared_ = 100;
};

struct Trained {
  Training state{};
  Parameters parameters{};
  std::vector<IntermediateValue> values{};
  std::optional<std::size_t> parent{};
  bool ended = false;
};

class Population {
 public:
  Population(Explore explore, std::size_t size, std::uint64_t seed) : random_(seed) {
    spec_.interval = kInterval;
    spec_.parameters = {"lr", "idle"};
    spec_.explore = explore;
    for (std::size_t i = 0; i < size; ++i)
      trials_.push_back({.parameters = space_.Sample(random_)});
  }

  // The best loss after all steps.
  double Train() {
    for (int step = 1; step <= kSteps; ++step) {
      for (Trained& trial : trials_) {
        if (trial.ended) continue;
        const double told = trial.state.Step(trial.parameters, random_);
        trial.values.push_back({.step = step, .value = told, .at = {}});
      }
      if (step % kInterval != 0 || step == kSteps) continue;
      Compare(step);
    }
    double best = std::numeric_limits<double>::infinity();
    for (const Trained& trial : trials_) {
      if (!trial.ended) best = std::min(best, trial.state.loss());
    }
    return best;
  }
  double slowest_ms() const { return slowest_ms_; }  // of the processor, for one takeover

 private:
  void Compare(std::int64_t step) {
    const std::vector<Curve> before = Curves();
    const Ranking ranking = RankAt(spec_, Direction::kMinimize, before, true, step);
    for (const Ranking::Place& loser : Losers(ranking, before)) {
      const std::vector<Curve> now = Curves();
      const auto winners = WinnersOver(loser, ranking, Direction::kMinimize, now);
      if (winners.empty()) continue;
      const std::size_t winner = winners[random_.Below(winners.size())];
      Replace({.loser = loser.member, .winner = winner, .step = step}, now);
    }
  }
  std::vector<Curve> Curves() const {
    std::vector<Curve> curves;
    for (const Trained& trial : trials_) {
      Curve curve{.trial_number = std::ssize(curves), .points = trial.values};
      curve.ended = trial.ended;
      curve.pruned = trial.ended;
      curves.push_back(curve);
    }
    return curves;
  }
  void Replace(const Takeover& takeover, const std::vector<Curve>& curves) {
    std::vector<PopulationMember> members;
    for (std::size_t i = 0; i < trials_.size(); ++i) {
      members.push_back({curves[i], &trials_[i].parameters, trials_[i].parent, takeover.step});
    }
    const std::clock_t begun = std::clock();
    Parameters explored =
        spec_.explore == Explore::kPb2
            ? ExploreByBandit(
                  spec_, space_, Direction::kMinimize, members, takeover,
                  [](const Parameters&) { return false; }, random_)
            : Perturb(spec_, space_, trials_[takeover.winner].parameters, random_);
    slowest_ms_ = std::max(slowest_ms_, 1e3 * static_cast<double>(std::clock() - begun) /
                                            static_cast<double>(CLOCKS_PER_SEC));
    trials_[takeover.loser].ended = true;
    trials_.push_back({.state = trials_[takeover.winner].state,
                       .parameters = std::move(explored),
                       .parent = takeover.winner});
  }

  const SearchSpace space_ = Rates();
  PopulationSpec spec_;
  Random random_;
  std::deque<Trained> trials_;  // parameters stay where they are
  double slowest_ms_ = 0;
};

double MedianOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

class NoisyQuadratic : public ::testing::TestWithParam<std::size_t> {};

INSTANTIATE_TEST_SUITE_P(Members, NoisyQuadratic, ::testing::Values(4U, 8U));

TEST_P(NoisyQuadratic, TheBanditIsNotWorseThanChance) {
  std::vector<double> perturbed;
  std::vector<double> bandit;
  int better = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    perturbed.push_back(Population(Explore::kPerturb, GetParam(), seed).Train());
    bandit.push_back(Population(Explore::kPb2, GetParam(), seed).Train());
    if (bandit.back() < perturbed.back()) ++better;
  }
  std::printf("perturb %.4g, pb2 %.4g, better with %d of %d seeds\n", MedianOf(perturbed),
              MedianOf(bandit), better, kSeeds);
  EXPECT_LE(MedianOf(bandit), MedianOf(perturbed));
  EXPECT_GE(2 * better, kSeeds);
}

// Of the quality of one seed nothing can be said. The time of a suggestion is printed.
TEST(OfAHundred, TheBanditIsFastEnoughForTheOwnersThread) {
  Population population(Explore::kPb2, 100, 1);
  EXPECT_LT(population.Train(), 0.02);
  std::printf("slowest suggestion: %.1f ms of the processor\n", population.slowest_ms());
}

}  // namespace
}  // namespace espalier
