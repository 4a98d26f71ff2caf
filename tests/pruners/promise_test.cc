#include "tuner/core/pruners/promise.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/promise/studies_of_curves.h"
#include "tests/pruners/curves.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kSteps = 40;

std::vector<double> Falling(double end, double gain, double power, std::int64_t steps) {
  std::vector<double> values;
  for (std::int64_t s = 1; s <= steps; ++s) {
    values.push_back(end + gain * std::pow(static_cast<double>(s), -power));
  }
  return values;
}

PruneVerdict Judge(const Options& options, const Curves& others, const std::vector<double>& values,
                   Direction direction = Direction::kMinimize, int best_k = 1) {
  const auto pruner = MakePruner("promise", options);
  EXPECT_TRUE(pruner.ok()) << pruner.status();
  Curves mine;
  Curve trial = mine.Add(values, false);
  trial.trial_number = static_cast<std::int64_t>(others.all().size());
  return (*pruner)->Judge({direction, trial, others.all(), kSteps, best_k});
}

// Six trials of whom the best ends near 0.1, and the others 0.05 apart.
Curves Six(double sign = 1) {
  Curves others;
  for (int i = 0; i < 6; ++i) {
    std::vector<double> values = Falling(0.1 + 0.05 * i, 0.5, 0.8, kSteps);
    for (double& v : values) v *= sign;
    others.Add(values, true);
  }
  return others;
}

TEST(PromisePruner, EndsWhatHasLittleChanceWithFigures) {
  const PruneVerdict verdict = Judge({}, Six(), Falling(0.3, 0.5, 0.8, 12));
  EXPECT_TRUE(verdict.prune);
  EXPECT_THAT(verdict.reason, HasSubstr("at step 12 has "));
  EXPECT_THAT(verdict.reason, HasSubstr("% chance to end among the best 1 (needs 20 %)"));
}

TEST(PromisePruner, MaximisesWhereAsked) {
  std::vector<double> values = Falling(0.6, 0.5, 0.8, 12);
  for (double& v : values) v = -v;
  EXPECT_TRUE(Judge({}, Six(-1), values, Direction::kMaximize).prune);
  EXPECT_FALSE(Judge({}, Six(-1), values, Direction::kMinimize).prune);
}

TEST(PromisePruner, KeepsMoreWhereMoreAreWanted) {
  const std::vector<double> third = Falling(0.19, 0.5, 0.8, 20);
  EXPECT_TRUE(Judge({}, Six(), third).prune);
  EXPECT_FALSE(Judge({}, Six(), third, Direction::kMinimize, 3).prune);
  EXPECT_FALSE(Judge({{"best_k", 3}}, Six(), third).prune);
}

// Half of the trials start worse than the others and end better: whoever starts like them is kept.
TEST(PromisePruner, KeepsSlowStartersThatOvertake) {
  Curves others;
  for (int i = 0; i < 5; ++i) {
    others.Add(Falling(0.30 + 0.02 * i, 0.3, 1.5, kSteps), true);
    others.Add(Falling(0.02 + 0.02 * i, 0.8, 0.5, kSteps), true);
  }
  for (const std::int64_t steps : {4, 5, 6}) {
    const std::vector<double> slow = Falling(0.01, 0.8, 0.5, steps);
    ASSERT_GT(slow.back(), others.all()[0].points[static_cast<std::size_t>(steps - 1)].value);
    EXPECT_FALSE(Judge({}, others, slow).prune) << steps;
  }
  EXPECT_TRUE(Judge({}, others, Falling(0.3, 0.3, 1.5, 6)).prune);
}

TEST(PromisePruner, NeverEndsTheOnlyHope) {
  Curves others;
  for (int i = 0; i < 9; ++i) others.Running({0.5, 0.4, NAN});
  // Worse than all were, but the only one that still has a number.
  EXPECT_FALSE(Judge({{"threshold", 0.99}, {"share", 0.99}}, others, {0.9, 0.9, 0.9}).prune);
}

TEST(PromisePruner, KeepsManyEqualTrials) {
  Curves others;
  for (int i = 0; i < 40; ++i) others.Running({0.5});
  EXPECT_FALSE(Judge({}, others, {0.5}).prune);
}

TEST(PromisePruner, WaitsForEvidence) {
  const std::vector<double> bad = Falling(0.5, 0.5, 0.8, 12);
  EXPECT_FALSE(Judge({{"min_steps", 13}}, Six(), bad).prune);
  EXPECT_FALSE(Judge({{"min_trials", 8}}, Six(), bad).prune);
  EXPECT_TRUE(Judge({{"min_trials", 7}}, Six(), bad).prune);
}

TEST(PromisePruner, JudgesLongCurvesNowAndThen) {
  int judged = 0;
  for (std::int64_t steps = 33; steps <= 66; ++steps) {
    judged += Judge({}, Six(), Falling(0.5, 0.5, 0.8, steps)).prune ? 1 : 0;
  }
  EXPECT_GE(judged, 8);
  EXPECT_LE(judged, 16);
}

TEST(PromisePruner, EndsWhatIsNotANumber) {
  EXPECT_THAT(Judge({}, Curves(), {0.5, NAN}).reason, HasSubstr("step 2 is not a number"));
}

TEST(PromisePruner, NamesOptionsOutOfRange) {
  EXPECT_EQ(std::string(MakePruner("promise", {{"threshold", 1}}).status().message()),
            "pruner \"promise\" option \"threshold\": needs a number between 0 and 1, got 1");
  EXPECT_FALSE(MakePruner("promise", {{"share", NAN}}).ok());
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
                  .prune;
        }
      }
    }
    lost += found - best;
  }
  EXPECT_LT(steps, 0.25 * kStudies * kTrials * family.last_step);
  EXPECT_LT(lost / kStudies, 0.004);
}

}  // namespace
}  // namespace espalier
