#include <cmath>
#include <span>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/promise/studies_of_curves.h"
#include "tests/core/pruners/curves.h"
#include "tuner/core/pruners/pruner.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kWholeSteps = 40;

std::vector<double> Falling(double end, double gain, double power, std::int64_t steps) {
  std::vector<double> values;
  for (std::int64_t s = 1; s <= steps; ++s) {
    values.push_back(end + gain * std::pow(static_cast<double>(s), -power));
  }
  return values;
}

PruneVerdict JudgePromise(const Options& options, const Curves& others,
                          const std::vector<double>& values,
                          Direction direction = Direction::kMinimize, int best_k = 1) {
  const auto pruner = MakePruner("promise", options);
  EXPECT_TRUE(pruner.ok()) << pruner.status();
  Curves mine;
  Curve trial = mine.Add(values, false);
  trial.trial_number = static_cast<std::int64_t>(others.all().size());
  return (*pruner)->Judge({direction, trial, others.all(), kWholeSteps, best_k});
}

// Six trials of whom the best ends near 0.1, and the others 0.05 apart.
Curves Six(double sign = 1) {
  Curves others;
  for (int i = 0; i < 6; ++i) {
    std::vector<double> values = Falling(0.1 + 0.05 * i, 0.5, 0.8, kWholeSteps);
    for (double& v : values) v *= sign;
    others.Add(values, true);
  }
  return others;
}

TEST(PromisePruner, EndsWhatHasLittleChanceWithFigures) {
  const PruneVerdict verdict = JudgePromise({}, Six(), Falling(0.3, 0.5, 0.8, 12));
  EXPECT_EQ(verdict.action, PruneAction::kPrune);
  EXPECT_THAT(verdict.reason, HasSubstr("at step 12 has "));
  EXPECT_THAT(verdict.reason, HasSubstr("% chance to end among the best 1 (needs 30 %)"));
}

TEST(PromisePruner, MaximisesWhereAsked) {
  std::vector<double> values = Falling(0.6, 0.5, 0.8, 12);
  for (double& v : values) v = -v;
  EXPECT_EQ(JudgePromise({}, Six(-1), values, Direction::kMaximize).action, PruneAction::kPrune);
  EXPECT_NE(JudgePromise({}, Six(-1), values, Direction::kMinimize).action, PruneAction::kPrune);
}

TEST(PromisePruner, KeepsMoreWhereMoreAreWanted) {
  const std::vector<double> third = Falling(0.19, 0.5, 0.8, 20);
  EXPECT_EQ(JudgePromise({}, Six(), third).action, PruneAction::kPrune);
  EXPECT_NE(JudgePromise({}, Six(), third, Direction::kMinimize, 3).action, PruneAction::kPrune);
  EXPECT_NE(JudgePromise({{"best_k", 3}}, Six(), third).action, PruneAction::kPrune);
}

// Half of the trials start worse than the others and end better: whoever starts like them is kept.
TEST(PromisePruner, KeepsSlowStartersThatOvertake) {
  Curves others;
  for (int i = 0; i < 5; ++i) {
    others.Add(Falling(0.30 + 0.02 * i, 0.3, 1.5, kWholeSteps), true);
    others.Add(Falling(0.02 + 0.02 * i, 0.8, 0.5, kWholeSteps), true);
  }
  for (const std::int64_t steps : {4, 5, 6}) {
    const std::vector<double> slow = Falling(0.01, 0.8, 0.5, steps);
    ASSERT_GT(slow.back(), others.all()[0].points[static_cast<std::size_t>(steps - 1)].value);
    EXPECT_NE(JudgePromise({}, others, slow).action, PruneAction::kPrune) << steps;
  }
  EXPECT_EQ(JudgePromise({}, others, Falling(0.3, 0.3, 1.5, 6)).action, PruneAction::kPrune);
}

TEST(PromisePruner, NeverEndsTheOnlyHope) {
  Curves others;
  for (int i = 0; i < 9; ++i) others.Running({0.5, 0.4, NAN});
  // Worse than all were, but the only one that still has a number.
  EXPECT_NE(JudgePromise({{"threshold", 0.99}, {"risk", 0.99}}, others, {0.9, 0.9, 0.9}).action,
            PruneAction::kPrune);
}

TEST(PromisePruner, KeepsManyEqualTrials) {
  Curves others;
  for (int i = 0; i < 40; ++i) others.Running({0.5});
  EXPECT_NE(JudgePromise({}, others, {0.5}).action, PruneAction::kPrune);
}

// What is judged: one of three young trials of two objectives that are alike, beside ten complete
// ones on a front and thirty behind it.
PruneVerdict JudgeYoungBesideAFront(const Options& options) {
  Curves first;
  Curves second;
  const auto add = [&](double a, double b, std::int64_t steps, double start = 1.5) {
    first.Add(Falling(a, start - a, 0.8, steps), steps == kWholeSteps);
    second.Add(Falling(b, start - b, 0.8, steps), steps == kWholeSteps);
  };
  for (int i = 0; i < 10; ++i) add(0.01 * i * i, 0.01 * (9 - i) * (9 - i), kWholeSteps);
  for (int i = 0; i < 30; ++i) add(0.2 + 0.03 * i, 1.1 - 0.03 * i, kWholeSteps);
  for (int i = 0; i < 3; ++i) add(0.7, 0.7, 1, 1.55);
  std::vector<std::vector<std::vector<IntermediateValue>>> others;
  for (const Curve& curve : second.all())
    others.push_back({{curve.points.begin(), curve.points.end()}});
  std::vector<Curve> curves = first.all();
  for (std::size_t i = 0; i < curves.size(); ++i) curves[i].others = others[i];
  const std::vector<Direction> directions{Direction::kMinimize};
  const auto pruner = MakePruner("promise", options);
  EXPECT_TRUE(pruner.ok()) << pruner.status();
  return (*pruner)->Judge({.direction = Direction::kMinimize,
                           .trial = curves.back(),
                           .others = std::span(curves).first(curves.size() - 1),
                           .max_step = kWholeSteps,
                           .other_directions = directions});
}

TEST(PromisePruner, OfALargeFrontNoMoreIsRisked) {
  EXPECT_NE(JudgeYoungBesideAFront({{"threshold", 0.99}}).action, PruneAction::kPrune);
  // As much as the front's ten trials were counted as.
  const PruneVerdict verdict = JudgeYoungBesideAFront({{"threshold", 0.99}, {"risk", 0.9}});
  EXPECT_EQ(verdict.action, PruneAction::kPrune);
  EXPECT_THAT(verdict.reason, HasSubstr("% chance to end on the Pareto front (needs 99 %)"));
}

// Six trials under way of which the last is judged, with chances between nothing and certainty;
// each reports a step in `pace_s` seconds.
struct Race {
  std::vector<std::vector<IntermediateValue>> points;
  std::vector<Curve> curves;
};
Race SixUnderWay(double own_pace_s) {
  Race race;
  for (int i = 0; i < 6; ++i) {
    const double pace_s = i == 5 ? own_pace_s : 10;
    race.points.emplace_back();
    // The last one is the second best.
    const double end = i == 5 ? 0.11 : 0.1 + 0.02 * i;
    for (const double value : Falling(end, 0.5, 0.8, 12)) {
      const std::int64_t step = std::ssize(race.points.back()) + 1;
      const double wobble = 0.004 * static_cast<double>((7 * step + std::int64_t{3} * i) % 5 - 2);
      race.points.back().push_back(
          {step, value + wobble, 0, TimeFromSeconds(static_cast<double>(step) * pace_s), 0});
    }
  }
  for (int i = 0; i < 6; ++i) {
    race.curves.push_back({i, race.points[static_cast<std::size_t>(i)], false, false});
  }
  return race;
}

// The least `threshold` at which the last trial is ended, with risk out of the way.
double ChanceNeeded(double own_pace_s, double cost_weight = 0.5) {
  const Race race = SixUnderWay(own_pace_s);
  double needed = 1;
  for (double threshold = 0.99; threshold > 0.005; threshold -= 0.005) {
    const auto pruner = MakePruner(
        "promise", {{"threshold", threshold}, {"risk", 0.99}, {"cost_weight", cost_weight}});
    const std::span<const Curve> others(race.curves.data(), 5);
    const PrunerInput input{Direction::kMinimize, race.curves[5], others, kWholeSteps, 1, 1};
    if ((*pruner)->Judge(input).action != PruneAction::kPrune) break;
    needed = threshold;
  }
  return needed;
}

TEST(PromisePruner, SlowTrialsMustPromiseMore) {
  const double usual = ChanceNeeded(10);
  ASSERT_GT(usual, 0.02);
  ASSERT_LT(usual, 0.3);
  EXPECT_NEAR(ChanceNeeded(40), usual / 2, 0.011) << "four times as slow";
  EXPECT_NEAR(ChanceNeeded(2.5), 2 * usual, 0.011);
  EXPECT_NEAR(ChanceNeeded(4000), usual / 3, 0.011) << "a third at most";
  EXPECT_NEAR(ChanceNeeded(4000, 0.001), usual, 0.011) << "cost does not count";
}

TEST(PromisePruner, RisksLessInALargePool) {
  const Race race = SixUnderWay(10);
  const std::span<const Curve> others(race.curves.data(), 5);
  const auto pruner = MakePruner("promise", {{"risk", 0.5}});
  const auto ends = [&](double pool_share) {
    return (*pruner)
               ->Judge({Direction::kMinimize, race.curves[5], others, kWholeSteps, 1, pool_share})
               .action == PruneAction::kPrune;
  };
  EXPECT_TRUE(ends(1));
  EXPECT_FALSE(ends(1.0 / 2000));
}

// However little each of them has, together they are worth something.
TEST(PromisePruner, WhatIsRiskedDependsOnAllThatHaveNoMore) {
  Curves others;
  others.Running({0.499});
  for (int i = 0; i < 40; ++i) others.Running({0.5});
  EXPECT_NE(JudgePromise({{"risk", 0.2}}, others, {0.5}).action, PruneAction::kPrune);
  EXPECT_EQ(JudgePromise({{"risk", 0.99}}, others, {0.5}).action, PruneAction::kPrune);
}

TEST(PromisePruner, WaitsForEvidence) {
  const std::vector<double> bad = Falling(0.5, 0.5, 0.8, 12);
  EXPECT_NE(JudgePromise({{"min_steps", 13}}, Six(), bad).action, PruneAction::kPrune);
  EXPECT_NE(JudgePromise({{"min_trials", 8}}, Six(), bad).action, PruneAction::kPrune);
  EXPECT_EQ(JudgePromise({{"min_trials", 7}}, Six(), bad).action, PruneAction::kPrune);
}

TEST(PromisePruner, JudgesLongCurvesNowAndThen) {
  int judged = 0;
  for (std::int64_t steps = 33; steps <= 66; ++steps) {
    judged += JudgePromise({}, Six(), Falling(0.5, 0.5, 0.8, steps)).action == PruneAction::kPrune;
  }
  EXPECT_GE(judged, 8);
  EXPECT_LE(judged, 16);
}

TEST(PromisePruner, EndsATrialAfterThreeValuesThatAreNotNumbers) {
  EXPECT_EQ(JudgePromise({}, Curves(), {0.5, NAN, NAN}).action, PruneAction::kKeep);
  EXPECT_THAT(JudgePromise({}, Curves(), {0.5, NAN, -INFINITY, NAN}).reason,
              HasSubstr("nan at step 4, and the two values before it were no numbers either"));
}

TEST(PromisePruner, NamesOptionsOutOfRange) {
  EXPECT_EQ(std::string(MakePruner("promise", {{"threshold", 1}}).status().message()),
            "pruner \"promise\": option \"threshold\" needs a number > 0 and < 1, got 1");
  EXPECT_FALSE(MakePruner("promise", {{"risk", NAN}}).ok());
  EXPECT_FALSE(MakePruner("promise", {{"best_k", 2000}}).ok());
  EXPECT_FALSE(MakePruner("promise", {{"min_trials", 1}}).ok());
}

// On whole studies: trials side by side, one step after another. The best is rarely lost, and far
// less is trained than all of it.
TEST(PromisePruner, FindsTheBestOfPoolbenchForAFractionOfTheSteps) {
  const auto pruner = MakePruner("promise", {});
  ASSERT_TRUE(pruner.ok());
  const CurveFamily& family = CurveFamilies().front();
  double steps = 0, lost = 0;
  constexpr int kStudies = 10, kTrials = 24;
  for (std::uint64_t study = 0; study < kStudies; ++study) {
    const WholeCurves whole = family.draw(study + 500, kTrials);
    std::vector<std::vector<IntermediateValue>> points(whole.size());
    std::vector<Curve> curves(whole.size());
    for (std::size_t i = 0; i < whole.size(); ++i) {
      points[i].reserve(whole[i].size());
      curves[i].trial_number = static_cast<std::int64_t>(i);
    }
    double best = HUGE_VAL, found = HUGE_VAL;
    for (int step = 1; step <= family.last_step; ++step) {
      for (std::size_t i = 0; i < whole.size(); ++i) {
        const double value = whole[i][static_cast<std::size_t>(step - 1)];
        if (step == family.last_step) best = std::min(best, value);
        if (curves[i].ended) continue;
        points[i].push_back(
            {.step = step, .value = value, .progress = 0, .at = {}, .batch_size = 0});
        curves[i].points = points[i];
        ++steps;
        std::vector<Curve> others = curves;
        others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
        if (step == family.last_step) {
          found = std::min(found, value);
        } else {
          curves[i].ended =
              (*pruner)
                  ->Judge({Direction::kMinimize, curves[i], others, family.last_step, 1})
                  .action == PruneAction::kPrune;
        }
      }
    }
    lost += found - best;
  }
  EXPECT_LT(steps, 0.25 * kStudies * kTrials * family.last_step);
  EXPECT_LT(lost / kStudies, 0.005);
}

}  // namespace
}  // namespace espalier
