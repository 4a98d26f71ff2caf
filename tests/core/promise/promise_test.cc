#include "tuner/core/promise/promise.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>
#include <string>

#include "base/random.h"
#include "gtest/gtest.h"

namespace espalier {
namespace {

// A study of curves with the points they refer to.
class Curves {
 public:
  enum class State { kRunning, kComplete, kPruned };

  void Add(const std::vector<double>& values, State state = State::kRunning,
           std::int64_t every = 1) {
    std::vector<IntermediateValue> points;
    for (const double value : values) {
      IntermediateValue& point = points.emplace_back();
      point.step = std::ssize(points) * every;
      point.value = value;
    }
    points_.push_back(std::move(points));
    all_.push_back({.trial_number = std::ssize(all_),
                    .points = points_.back(),
                    .ended = state != State::kRunning,
                    .complete = state == State::kComplete});
  }
  const std::vector<Curve>& all() const { return all_; }

 private:
  std::deque<std::vector<IntermediateValue>> points_;
  std::vector<Curve> all_;
};

constexpr auto kComplete = Curves::State::kComplete;
constexpr auto kPruned = Curves::State::kPruned;

// A power law with noise: what losses look like.
struct PowerLaw {
  double end, gain, power;
  double noise = 0.01;
  explicit PowerLaw(Random& random)
      : end(random.Uniform(0.1, 0.4)),
        gain(random.Uniform(0.3, 1.0)),
        power(random.Uniform(0.4, 1.0)) {}
  std::vector<double> Values(Random& random, int steps) const {
    std::vector<double> values;
    for (int s = 1; s <= steps; ++s) {
      values.push_back(end + gain * std::pow(s, -power) + noise * random.Normal());
    }
    return values;
  }
};

TEST(Promise, OfNoCurvesIsNothing) { EXPECT_TRUE(Promise(Direction::kMinimize, {}, {}).empty()); }

TEST(Promise, IsThePriorBeforeAnyReport) {
  Curves curves;
  for (int i = 0; i < 8; ++i) curves.Add({});
  for (const double p : Promise(Direction::kMinimize, curves.all(), {.best_k = 2})) {
    EXPECT_NEAR(p, 0.25, 0.01);
  }
}

TEST(Promise, FollowsTheValuesAtEqualSteps) {
  for (const double sign : {1.0, -1.0}) {
    Curves curves;
    for (const double end : {0.2, 0.3, 0.4, 0.5}) {
      curves.Add({sign * (end + 0.5), sign * (end + 0.3), sign * (end + 0.2)});
    }
    const auto p = Promise(sign > 0 ? Direction::kMinimize : Direction::kMaximize, curves.all(),
                           {.max_step = 9});
    EXPECT_GT(p[0], p[1]);
    EXPECT_GT(p[1], p[2]);
    EXPECT_GT(p[2], p[3]);
    EXPECT_NEAR(std::accumulate(p.begin(), p.end(), 0.0), 1, 0.05);
  }
}

TEST(Promise, IsTheSameForAMetricAndItsNegative) {
  Random random(5);
  Curves curves;
  Curves negated;
  for (int i = 0; i < 10; ++i) {
    std::vector<double> values = PowerLaw(random).Values(random, 1 + i);
    curves.Add(values);
    for (double& v : values) v = -v;
    negated.Add(values);
  }
  const auto p = Promise(Direction::kMinimize, curves.all(), {.max_step = 20});
  const auto q = Promise(Direction::kMaximize, negated.all(), {.max_step = 20});
  for (std::size_t i = 0; i < p.size(); ++i) EXPECT_NEAR(p[i], q[i], 1e-6);
}

TEST(Promise, ExpectsAYoungTrialToImproveAsOthersDid) {
  Curves curves;
  for (const double d : {0.0, 0.02, 0.04, 0.06}) {
    curves.Add({1.0 + d, 0.7 + d, 0.5 + d, 0.4 + d, 0.35 + d}, kComplete);
  }
  curves.Add({0.9, 0.6});  // a tenth better than the best was then, but worse than its end
  const auto p = Promise(Direction::kMinimize, curves.all(), {.max_step = 5});
  EXPECT_EQ(std::max_element(p.begin(), p.end()) - p.begin(), 4);
  EXPECT_GT(p[4], 0.5);
}

TEST(Promise, IsZeroForWhatCannotEndWell) {
  Curves curves;
  curves.Add({0.5, 0.1}, kPruned);
  curves.Add({0.5, NAN});
  curves.Add({0.5, INFINITY});
  curves.Add({0.5, 0.4});
  curves.Add({}, kPruned);
  const auto p = Promise(Direction::kMinimize, curves.all(), {});
  EXPECT_EQ(p, (std::vector<double>{0, 0, 0, 1, 0}));
}

TEST(Promise, OfATrialThatRunsIsNeverZero) {
  Curves curves;
  for (const double d : {0.0, 0.01, 0.02}) curves.Add({0.5 + d, 0.3 + d, 0.2 + d}, kComplete);
  curves.Add({1e3, 1e3});
  const auto p = Promise(Direction::kMinimize, curves.all(), {.max_step = 3});
  EXPECT_GT(p[3], 0);
  EXPECT_LT(p[3], 1e-3);
  EXPECT_NEAR(p[0], 1, 1e-3);
}

TEST(Promise, OfWhatBreaksAConstraintIsNoneAndNobodysRival) {
  Curves curves;
  for (const double d : {0.0, 0.2, 0.4}) curves.Add({0.5 + d, 0.3 + d, 0.2 + d}, kComplete);
  curves.Add({0.1, 0.05});
  std::vector<Curve> all = curves.all();
  all[0].breaks = true;
  all[0].complete = false;
  all[3].breaks = true;
  const auto p = Promise(Direction::kMinimize, all, {.max_step = 3});
  EXPECT_EQ(p[0], 0);
  EXPECT_NEAR(p[1], 1, 1e-3);
  EXPECT_GT(p[3], 0) << "it may still come to keep it";
  EXPECT_LT(p[3], 1e-3);
}

TEST(Promise, OfCompleteTrialsIsTheirRank) {
  Curves curves;
  curves.Add({0.5, 0.3}, kComplete);
  curves.Add({0.5, 0.2}, kComplete);
  curves.Add({0.5, 0.4}, kComplete);
  EXPECT_EQ(Promise(Direction::kMinimize, curves.all(), {}), (std::vector<double>{0, 1, 0}));
}

TEST(Promise, IsNotSpoiltByOneDivergedCurve) {
  Random random(11);
  Curves curves;
  std::vector<PowerLaw> laws;
  for (int i = 0; i < 12; ++i) curves.Add(PowerLaw(random).Values(random, 10));
  const auto before = Promise(Direction::kMinimize, curves.all(), {.max_step = 20});
  curves.Add({1, 10, 1e6, 1e20, 1e200});
  const auto after = Promise(Direction::kMinimize, curves.all(), {.max_step = 20});
  const auto best = std::max_element(before.begin(), before.end()) - before.begin();
  const auto still = std::max_element(after.begin(), after.end()) - after.begin();
  EXPECT_EQ(best, still);
  EXPECT_LT(after.back(), 0.02);
}

TEST(Promise, TakesCurvesOfDifferentLengthsAndSteps) {
  Random random(12);
  Curves curves;
  for (int i = 0; i < 300; ++i) {
    const PowerLaw law(random);
    curves.Add(law.Values(random, 1 + static_cast<int>(random.Below(120))),
               random.Below(3) == 0 ? kPruned : Curves::State::kRunning,
               1 + static_cast<std::int64_t>(random.Below(5)));
  }
  for (const int k : {1, 3}) {
    const auto p = Promise(Direction::kMinimize, curves.all(), {.best_k = k, .max_step = 1000});
    for (const double v : p) {
      EXPECT_GE(v, 0);
      EXPECT_LE(v, 1);
    }
    EXPECT_NEAR(std::accumulate(p.begin(), p.end(), 0.0), k, 0.05);
  }
}

// Studies whose outcome is known: halfway, with half of the trials complete, what is promised must
// come true about as often as promised.
TEST(Promise, IsCalibratedOnPowerLaws) {
  constexpr int kStudies = 150, kTrials = 16, kSteps = 24;
  Random random(2026);
  double of_best = 0;
  double of_others = 0;
  int said_likely = 0, were_best = 0;
  double likely_sum = 0;
  for (int study = 0; study < kStudies; ++study) {
    Curves now;
    std::vector<double> ends;
    for (int i = 0; i < kTrials; ++i) {
      const std::vector<double> whole = PowerLaw(random).Values(random, kSteps);
      ends.push_back(whole.back());
      if (i < kTrials / 2) {
        now.Add(whole, kComplete);
      } else {
        now.Add({whole.begin(), whole.begin() + kSteps / 2});
      }
    }
    const auto p = Promise(Direction::kMinimize, now.all(), {.max_step = kSteps});
    const auto best =
        static_cast<std::size_t>(std::min_element(ends.begin(), ends.end()) - ends.begin());
    for (std::size_t i = kTrials / 2; i < kTrials; ++i) {
      (i == best ? of_best : of_others) += p[i];
      if (p[i] < 0.3 || p[i] > 0.9) continue;
      ++said_likely;
      likely_sum += p[i];
      were_best += i == best ? 1 : 0;
    }
  }
  const double best_mean = of_best / (kStudies / 2.0);
  const double other_mean = of_others / (kStudies * (kTrials / 2.0 - 0.5));
  EXPECT_GT(best_mean, 0.4);
  EXPECT_LT(other_mean, 0.1);
  ASSERT_GT(said_likely, 30);
  EXPECT_NEAR(likely_sum / said_likely, static_cast<double>(were_best) / said_likely, 0.15);
}

// Halfway and with no trial further on, the later best must already stand out.
TEST(Promise, OfTheLaterBestIsHighHalfway) {
  constexpr int kStudies = 100, kTrials = 16;
  Random random(99);
  double of_best = 0;
  double of_others = 0;
  for (int study = 0; study < kStudies; ++study) {
    Curves now;
    std::vector<double> ends;
    for (int i = 0; i < kTrials; ++i) {
      const std::vector<double> whole = PowerLaw(random).Values(random, 24);
      ends.push_back(whole.back());
      now.Add({whole.begin(), whole.begin() + 12});
    }
    const auto p = Promise(Direction::kMinimize, now.all(), {.max_step = 24});
    const auto best =
        static_cast<std::size_t>(std::min_element(ends.begin(), ends.end()) - ends.begin());
    for (std::size_t i = 0; i < p.size(); ++i) (i == best ? of_best : of_others) += p[i];
  }
  EXPECT_GT(of_best / kStudies, 4 * of_others / (kStudies * (kTrials - 1)));
}

}  // namespace
}  // namespace espalier
