#include <cmath>

#include "gtest/gtest.h"
#include "tests/core/pruners/curves.h"
#include "tuner/core/pruners/pruner.h"

namespace espalier {
namespace {

PruneVerdict JudgePatient(const Options& options, const Curves& others,
                          const std::vector<double>& values,
                          Direction direction = Direction::kMinimize) {
  const auto pruner = MakePruner("patient", options);
  EXPECT_TRUE(pruner.ok()) << pruner.status();
  Curves mine;
  mine.Add(values, false);
  return (*pruner)->Judge({direction, mine.all().front(), others.all()});
}

Curves Better() {
  Curves others;
  for (int i = 0; i < 5; ++i) others.Complete({0.1, 0.1, 0.1, 0.1, 0.1});
  return others;
}

const Options kMedian = {{"patience", 1}, {"pruner", "median"}};

TEST(PatientPruner, LetsTheOtherPrunerEndATrialThatDoesNotImprove) {
  EXPECT_EQ(JudgePatient(kMedian, Better(), {0.5, 0.6}).action, PruneAction::kKeep);
  EXPECT_EQ(JudgePatient(kMedian, Better(), {0.5, 0.6, 0.4}).action, PruneAction::kKeep);
  EXPECT_EQ(JudgePatient(kMedian, Better(), {0.5, 0.6, 0.7}).reason,
            "0.5, its best up to step 3, is worse than the median 0.1 of 5 complete trials there "
            "(0.5 before its last 2 reports, 0.6 since)");
}

TEST(PatientPruner, KeepsWhatTheOtherPrunerKeeps) {
  EXPECT_EQ(JudgePatient(kMedian, Curves(), {0.5, 0.6, 0.7}).action, PruneAction::kKeep);
}

TEST(PatientPruner, GivesTheOtherPrunerItsOptions) {
  Options options = kMedian;
  options["pruner.startup_trials"] = 6;
  EXPECT_EQ(JudgePatient(options, Better(), {0.5, 0.6, 0.7}).action, PruneAction::kKeep);
  options["pruner.startup_trials"] = 5;
  EXPECT_EQ(JudgePatient(options, Better(), {0.5, 0.6, 0.7}).action, PruneAction::kPrune);
}

TEST(PatientPruner, IsEarlyStoppingByItself) {
  const Options options = {{"patience", 1}};
  EXPECT_EQ(JudgePatient(options, {}, {0.5, 0.6, 0.7}).reason,
            "0.5 before its last 2 reports, 0.6 since");
  EXPECT_EQ(JudgePatient(options, {}, {0.5, 0.6, 0.5}).action, PruneAction::kKeep);
  EXPECT_EQ(JudgePatient(options, {}, {0.5, 0.4, 0.3}, Direction::kMaximize).action,
            PruneAction::kPrune);
}

TEST(PatientPruner, ForgivesWhatIsAsSmallAsMinDelta) {
  const Options options = {{"patience", 0}, {"min_delta", 0.25}};
  EXPECT_EQ(JudgePatient(options, {}, {0.5, 0.75}).action, PruneAction::kKeep);
  EXPECT_EQ(JudgePatient(options, {}, {0.5, 0.76}).action, PruneAction::kPrune);
}

TEST(PatientPruner, PassesOverWhatIsNoNumber) {
  const Options options = {{"patience", 1}};
  EXPECT_EQ(JudgePatient(options, {}, {0.5, NAN, NAN}).action, PruneAction::kKeep);
  EXPECT_EQ(JudgePatient(options, {}, {NAN, 0.5, 0.6}).action, PruneAction::kKeep);
  EXPECT_EQ(JudgePatient(options, {}, {0.5, NAN, 0.6}).action, PruneAction::kPrune);
}

TEST(PatientPruner, PausesAndGoesOnAsTheOtherOne) {
  const auto pruner = *MakePruner("patient", {{"patience", 0}, {"pruner", "asha_promote"}});
  EXPECT_TRUE(pruner->pauses());
  EXPECT_FALSE((*MakePruner("patient", {}))->pauses());
  EXPECT_FALSE((*MakePruner("patient", {{"pruner", "wilcoxon"}}))->steps_ascend());
  Curves curves;
  for (const double v : {0.1, 0.2, 0.3, 0.9}) curves.Running({v});
  const std::vector<std::size_t> paused = {0, 3};
  EXPECT_EQ(pruner->MayGoOn(Direction::kMinimize, curves.all(), paused),
            (*MakePruner("asha_promote", {}))->MayGoOn(Direction::kMinimize, curves.all(), paused));
}

TEST(PatientPruner, NamesWhatIsWrongWithTheOtherOne) {
  EXPECT_EQ(std::string(
                MakePruner("patient", {{"pruner", "asha"}, {"pruner.eta", 1}}).status().message()),
            "pruner \"patient\": pruner \"asha\": option \"eta\" needs a whole number >= 2, got 1");
  EXPECT_FALSE(MakePruner("patient", {{"pruner", "medain"}}).ok());
}

}  // namespace
}  // namespace espalier
