// What every row of the table of pruners must keep to.

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/base/plugin_rows.h"
#include "tests/core/pruners/curves.h"
#include "tuner/core/pruners/pruner.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;

// Options without which some pruner would have nothing to say, or cannot be made.
Options OptionsFor(const std::string& pruner) {
  if (pruner == "threshold") return {{"upper", 1e6}};
  if (pruner == "successive_halving") return {{"min_steps", 3}};
  if (pruner == "patient") return {{"patience", 1}, {"pruner", "median"}};
  return {};
}

class PrunerContract : public ::testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Pruner> Make() {
    auto pruner = MakePruner(GetParam(), OptionsFor(GetParam()));
    EXPECT_TRUE(pruner.ok()) << pruner.status();
    return *std::move(pruner);
  }
};

TEST_P(PrunerContract, KeepsTrialWithoutPoints) {
  const auto pruner = Make();
  Curves curves;
  for (int i = 0; i < 20; ++i) curves.Complete({0.1, 0.1});
  EXPECT_NE(pruner->Judge({Direction::kMinimize, Curve{}, curves.all()}).action,
            PruneAction::kPrune);
}

TEST_P(PrunerContract, KeepsALoneTrial) {
  const auto pruner = Make();
  Curves mine;
  mine.Running({0.9, 0.8, 0.9});
  const PruneVerdict verdict = pruner->Judge({Direction::kMinimize, mine.all()[0], {}});
  EXPECT_EQ(verdict.action, PruneAction::kKeep);
}

TEST_P(PrunerContract, JudgesAlikeWhateverTheOrderAndKeepsTheBest) {
  const auto pruner = Make();
  Random random(7);
  for (int round = 0; round < 500; ++round) {
    Curves curves;
    const auto trials = 1 + random.Below(30);
    for (std::uint64_t i = 0; i < trials; ++i) {
      std::vector<double> values;
      const auto length = random.Below(12);
      for (std::uint64_t s = 0; s < length; ++s) {
        values.push_back(random.Below(20) == 0 ? NAN : random.Uniform());
      }
      curves.Add(values, random.Below(2) == 0);
    }
    const Direction direction = random.Below(2) == 0 ? Direction::kMinimize : Direction::kMaximize;
    Curves mine;
    std::vector<double> values(1 + random.Below(12));
    for (double& v : values) v = random.Uniform();
    const Curve& trial = mine.Add(values, false);
    const PruneVerdict verdict = pruner->Judge({direction, trial, curves.all()});
    EXPECT_EQ(verdict.action != PruneAction::kKeep, !verdict.reason.empty());
    std::vector<Curve> turned = curves.all();
    std::reverse(turned.begin(), turned.end());
    const PruneVerdict again = pruner->Judge({direction, trial, turned});
    EXPECT_EQ(verdict.action, again.action);
    EXPECT_FALSE(verdict.action == PruneAction::kPause && !pruner->pauses());
    EXPECT_EQ(verdict.reason, again.reason);

    values.back() = direction == Direction::kMinimize ? -1 : 2;
    // Of instances the best is one that is better on all of them.
    if (!pruner->steps_ascend()) std::ranges::fill(values, values.back());
    Curves best;
    const PruneVerdict of_best = pruner->Judge({direction, best.Add(values, false), curves.all()});
    EXPECT_EQ(of_best.action, PruneAction::kKeep);
  }
}

// At step 4, where no pruner has a rung. Bounds alone are for each value.
TEST_P(PrunerContract, EndsNoGoodTrialForOneBadValue) {
  const auto pruner = Make();
  const bool bounds = GetParam() == "threshold";
  for (const Direction direction : {Direction::kMinimize, Direction::kMaximize}) {
    const double sign = direction == Direction::kMinimize ? 1 : -1;
    Curves curves;
    for (int i = 0; i < 12; ++i) curves.Complete({sign * 0.9, sign * 0.8, sign * 0.7, sign * 0.6});
    for (const double bad : {std::nan(""), -HUGE_VAL, HUGE_VAL}) {
      Curves mine;
      const Curve& trial = mine.Running({sign * 0.5, sign * 0.4, sign * 0.3, bad});
      EXPECT_EQ(pruner->Judge({direction, trial, curves.all()}).action,
                bounds && bad != -HUGE_VAL ? PruneAction::kPrune : PruneAction::kKeep)
          << bad;
    }
  }
}

TEST_P(PrunerContract, EndsATrialWithoutAnyNumber) {
  const auto pruner = Make();
  for (const Direction direction : {Direction::kMinimize, Direction::kMaximize}) {
    const double best = direction == Direction::kMinimize ? -HUGE_VAL : HUGE_VAL;
    const double nan = std::nan("");
    for (const auto& values : {std::vector<double>{nan}, {best}, {best, nan}}) {
      Curves mine;
      const PruneVerdict verdict = pruner->Judge({direction, mine.Add(values, false), {}});
      EXPECT_EQ(verdict.action, GetParam() == "none" ? PruneAction::kKeep : PruneAction::kPrune);
    }
  }
}

// Optuna's clients may give any.
TEST_P(PrunerContract, TakesAnySteps) {
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  const auto pruner = Make();
  Curves curves;
  for (int i = 0; i < 12; ++i) curves.AddPoints({{kLeast, 0.9}, {2, 0.8}, {kMost, 0.7}}, true);
  for (const std::vector<Curves::StepValue>& points :
       std::vector<std::vector<Curves::StepValue>>{{{kLeast, 2}},
                                                   {{kMost, 2}},
                                                   {{kLeast, 2}, {kMost, 2}},
                                                   {{kLeast, 2}, {-1, 2}, {4, 2}}}) {
    Curves mine;
    const Curve& trial = mine.AddPoints(points, false);
    for (const std::int64_t max_step : {std::int64_t{0}, std::int64_t{5}, kMost}) {
      const PruneVerdict verdict =
          pruner->Judge({Direction::kMinimize, trial, curves.all(), max_step});
      EXPECT_EQ(verdict.action != PruneAction::kKeep, !verdict.reason.empty());
    }
  }
}

TEST_P(PrunerContract, NamesUnknownOption) {
  const auto pruner = MakePruner(GetParam(), {{"no_such_option", 1}});
  EXPECT_EQ(pruner.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(pruner.status().message()), HasSubstr("\"no_such_option\""));
}

INSTANTIATE_TEST_SUITE_P(All, PrunerContract, ::testing::ValuesIn(Pruners().Names()),
                         [](const auto& row) { return row.param; });

TEST(Pruners, TellWhatTheyDoAndTake) { ExpectTold(Pruners().Infos()); }

TEST(MakePruner, NamesUnknownPrunerAndListsTheKnown) {
  const auto pruner = MakePruner("medain", {});
  EXPECT_EQ(
      std::string(pruner.status().message()),
      "pruner \"medain\" is unknown; known are none, median, percentile, threshold, asha, "
      "asha_promote, hyperband, successive_halving, wilcoxon, promise, asha_promise, patient");
}

TEST(MakePruner, NamesOptionOutOfRange) {
  EXPECT_EQ(std::string(MakePruner("asha", {{"eta", 1}}).status().message()),
            "pruner \"asha\": option \"eta\" needs a whole number >= 2, got 1");
  EXPECT_FALSE(MakePruner("asha", {{"eta", 2.5}}).ok());
  EXPECT_FALSE(MakePruner("median", {{"interval", NAN}}).ok());
}

}  // namespace
}  // namespace espalier
