#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/pruners/curves.h"
#include "tuner/core/pruners/pruner.h"

namespace espalier {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::unique_ptr<Pruner> Make(const Options& options = {}) {
  auto pruner = MakePruner("asha_promote", options);
  EXPECT_TRUE(pruner.ok()) << pruner.status();
  return *std::move(pruner);
}

PruneVerdict JudgePromotion(const Curves& others, const std::vector<double>& values) {
  Curves mine;
  return Make()->Judge({Direction::kMaximize, mine.Add(values, false), others.all()});
}

std::vector<std::size_t> MayGoOn(const Curves& curves, const std::vector<std::size_t>& paused) {
  return Make()->MayGoOn(Direction::kMaximize, curves.all(), paused);
}

TEST(AshaPromotePruner, PausesOutsideTheBestThirdWithFigures) {
  Curves others;
  for (const double v : {0.1, 0.2, 0.3, 0.7, 0.8}) others.Running({v});
  const PruneVerdict verdict = JudgePromotion(others, {0.6});
  EXPECT_EQ(verdict.action, PruneAction::kPause);
  EXPECT_EQ(verdict.reason,
            "0.6 at step 1 waits to come among the best 1/3 of 6 trials there (needs 0.7)");
  EXPECT_NE(JudgePromotion(others, {0.75}).action, PruneAction::kPause);
}

TEST(AshaPromotePruner, LetsTheBestOfARungGoOnHoweverFewThereAre) {
  EXPECT_NE(JudgePromotion({}, {0.1}).action, PruneAction::kPause);
  Curves others;
  others.Running({0.5});
  EXPECT_EQ(JudgePromotion(others, {0.1}).action, PruneAction::kPause);
  EXPECT_NE(JudgePromotion(others, {0.6}).action, PruneAction::kPause);
}

TEST(AshaPromotePruner, SaysNothingBetweenRungs) {
  Curves others;
  for (int i = 0; i < 9; ++i) others.Running({0.9, 0.9});
  EXPECT_NE(JudgePromotion(others, {0.9, 0.1}).action, PruneAction::kPause);
}

TEST(AshaPromotePruner, PromotesWhoComesIntoTheBestThird) {
  Curves curves;
  curves.Running({0.9, 0.9});
  curves.Running({0.8});
  curves.Running({0.7});
  for (int i = 0; i < 2; ++i) curves.Running({0.1});
  EXPECT_THAT(MayGoOn(curves, {1, 2}), IsEmpty()) << "one of five goes on";
  curves.Running({0.1});
  EXPECT_THAT(MayGoOn(curves, {1, 2}), ElementsAre(1)) << "two of six go on";
}

TEST(AshaPromotePruner, LetsTrialsGoOnThatWerePausedForAnotherReason) {
  Curves curves;
  for (int i = 0; i < 9; ++i) curves.Running({0.9, 0.9, 0.9});
  curves.Running({0.1, 0.1});
  curves.Running({});
  curves.Running({0.1, 0.1, 0.1});
  EXPECT_THAT(MayGoOn(curves, {9, 10, 11}), ElementsAre(9, 10));
}

TEST(AshaPromotePruner, EndsWhatIsNotANumber) {
  const PruneVerdict verdict = JudgePromotion({}, {NAN});
  EXPECT_EQ(verdict.action, PruneAction::kPrune);
}

TEST(AshaPromotePruner, ReadsTheOptionsOfAsha) {
  EXPECT_EQ(std::string(MakePruner("asha_promote", {{"eta", 1}}).status().message()),
            "pruner \"asha_promote\": option \"eta\" needs a whole number >= 2, got 1");
  EXPECT_FALSE(MakePruner("asha_promote", {{"min_steps", 9}, {"max_steps", 4}}).ok());
}

}  // namespace
}  // namespace espalier
