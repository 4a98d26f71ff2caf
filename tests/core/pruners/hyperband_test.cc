#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/pruners/curves.h"
#include "tuner/core/pruners/pruner.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kSteps = 9;  // brackets from steps 1, 3 and 9, in shares of 9, 5 and 3

// Whether each of `trials` trials, all with the same values but for a last one that is the worst,
// is ended at `step` when it is that last one: what bracket it is in shows in that.
std::vector<bool> EndedAt(int trials, std::int64_t step) {
  const auto pruner = MakePruner("hyperband", {});
  EXPECT_TRUE(pruner.ok());
  std::vector<bool> ended;
  for (int worst = 0; worst < trials; ++worst) {
    Curves others;
    Curve trial;
    Curves mine;
    for (int i = 0; i < trials; ++i) {
      std::vector<double> values(static_cast<std::size_t>(step), i == worst ? 1.0 : 0.5);
      if (i == worst) {
        trial = mine.Add(values, false);
        trial.trial_number = i;
      }
      others.Add(values, false);
    }
    std::vector<Curve> rest = others.all();
    rest.erase(rest.begin() + worst);
    ended.push_back((*pruner)->Judge({Direction::kMinimize, trial, rest, kSteps, 1}).action ==
                    PruneAction::kPrune);
  }
  return ended;
}

TEST(HyperbandPruner, DealsTrialsToBracketsByTheirShares) {
  const std::vector<bool> at_one = EndedAt(17, 1);
  const std::vector<bool> at_three = EndedAt(17, 3);
  EXPECT_EQ(std::count(at_one.begin(), at_one.end(), true), 9);
  EXPECT_EQ(std::count(at_three.begin(), at_three.end(), true), 9 + 5);
  for (std::size_t i = 0; i < at_one.size(); ++i) EXPECT_LE(at_one[i], at_three[i]);
}

TEST(HyperbandPruner, JudgesWithinABracketOnly) {
  const auto pruner = MakePruner("hyperband", {});
  ASSERT_TRUE(pruner.ok());
  const std::vector<bool> first = EndedAt(17, 1);
  // All better trials are in other brackets.
  Curves others;
  for (int i = 0; i < 17; ++i) others.Running({first[static_cast<std::size_t>(i)] ? 0.9 : 0.1});
  Curves mine;
  Curve trial = mine.Running({0.5});
  trial.trial_number = 17;  // the cycle begins again: as trial 0
  ASSERT_TRUE(first[0]);
  EXPECT_NE((*pruner)->Judge({Direction::kMinimize, trial, others.all(), kSteps, 1}).action,
            PruneAction::kPrune);
}

TEST(HyperbandPruner, NamesTheBracket) {
  const auto pruner = MakePruner("hyperband", {{"max_steps", 9}});
  Curves others;
  for (int i = 0; i < 20; ++i) others.Running({0.1});
  Curves mine;
  Curve trial = mine.Running({0.5});
  trial.trial_number = 17;
  const PruneVerdict verdict = (*pruner)->Judge({Direction::kMinimize, trial, others.all()});
  EXPECT_THAT(verdict.reason, HasSubstr("of the bracket from step 1"));
}

TEST(HyperbandPruner, IsAshaWhileTheLengthIsUnknown) {
  const auto hyperband = MakePruner("hyperband", {});
  const auto asha = MakePruner("asha", {});
  Curves others;
  for (int i = 0; i < 20; ++i) others.Running({0.1, 0.1, 0.1});
  for (int number = 20; number < 30; ++number) {
    Curves mine;
    Curve trial = mine.Running({0.5, 0.5, 0.5});
    trial.trial_number = number;
    const PrunerInput input{Direction::kMinimize, trial, others.all()};
    EXPECT_EQ((*hyperband)->Judge(input).reason, (*asha)->Judge(input).reason);
  }
}

}  // namespace
}  // namespace espalier
