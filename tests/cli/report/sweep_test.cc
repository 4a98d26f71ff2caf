#include "tuner/cli/report/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

namespace espalier::report {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kStart = 1'700'000'000;
constexpr double kNow = kStart + 1000;

struct Curve {
  std::string rule;
  int batch = 0;
  std::vector<double> values;  // one each ten seconds
};

v1::Trial* Add(v1::StudyDetails& details, const Curve& curve) {
  v1::Trial* trial = details.add_trials();
  trial->set_number(details.trials_size() - 1);
  trial->set_state(v1::TRIAL_COMPLETE);
  if (!curve.rule.empty()) {
    v1::Parameter* rule = trial->add_parameters();
    rule->set_name("scaling_rule");
    rule->set_json("\"" + curve.rule + "\"");
  }
  v1::Parameter* batch = trial->add_parameters();
  batch->set_name("batch_size");
  batch->set_json(std::to_string(curve.batch));
  for (const double value : curve.values) {
    v1::IntermediateValue* reported = trial->add_values();
    reported->set_step(trial->values_size());
    reported->set_value(value);
    reported->set_at(kStart + 10.0 * trial->values_size());
    trial->set_value(value);
  }
  v1::SlotSpan* span = trial->add_spans();
  span->set_from(kStart);
  span->set_to(kStart + 500);
  span->add_slots();
  return trial;
}

v1::StudyDetails Accuracies(const std::vector<Curve>& curves) {
  v1::StudyDetails details;
  details.mutable_study()->set_maximize(true);
  details.mutable_study()->set_metric("accuracy");
  for (const Curve& curve : curves) Add(details, curve);
  return details;
}

std::vector<std::string> Names(const Sweep& sweep) {
  std::vector<std::string> names;
  for (const SweepGroup& group : sweep.groups) names.push_back(group.rule + "/" + group.batch);
  return names;
}

TEST(Sweep, GroupsByRuleAndBatchSizeInOrderOfSize) {
  const v1::StudyDetails details = Accuracies(
      {{"linear", 1024, {0.1}}, {"linear", 64, {0.1}}, {"adascale", 128, {}}, {"linear", 64, {}}});
  const Sweep sweep = SweepOf(details, std::nullopt, kNow);
  EXPECT_THAT(Names(sweep), ElementsAre("adascale/128", "linear/64", "linear/1024"));
  EXPECT_EQ(sweep.groups[1].trials, 2);
}

TEST(Sweep, HasNoGroupsWithoutSuchParameters) {
  v1::StudyDetails details = Accuracies({{"linear", 64, {0.1}}});
  details.mutable_trials(0)->clear_parameters();
  const Sweep sweep = SweepOf(details, std::nullopt, kNow);
  EXPECT_TRUE(sweep.groups.empty());
}

TEST(Sweep, TimesCountFromTheStudysTargetUnlessToldOtherwise) {
  v1::StudyDetails details = Accuracies({{"linear", 64, {0.5, 0.7, 0.9}}});
  details.mutable_study()->set_target(0.7);
  const Sweep by_study = SweepOf(details, std::nullopt, kNow);
  EXPECT_TRUE(by_study.target_given);
  ASSERT_EQ(by_study.groups[0].reached.size(), 1u);
  EXPECT_EQ(by_study.groups[0].reached[0].step, 2);
  EXPECT_DOUBLE_EQ(by_study.groups[0].reached[0].seconds, 20);
  const Sweep asked = SweepOf(details, 0.8, kNow);
  EXPECT_EQ(asked.groups[0].reached[0].step, 3);
  EXPECT_TRUE(SweepOf(details, 0.95, kNow).groups[0].reached.empty());
}

TEST(Sweep, WithoutATargetItIsWhatEveryGroupReached) {
  const v1::StudyDetails details = Accuracies({{"linear", 64, {0.5, 0.9}},
                                               {"linear", 128, {0.3, 0.6, 0.55}},
                                               {"linear", 256, {std::nan("")}}});
  const Sweep sweep = SweepOf(details, std::nullopt, kNow);
  EXPECT_FALSE(sweep.target_given);
  EXPECT_EQ(sweep.target, 0.6);
  EXPECT_EQ(sweep.groups[0].reached.size(), 1u);
  EXPECT_EQ(sweep.groups[1].reached.size(), 1u);
  EXPECT_TRUE(sweep.groups[2].reached.empty()) << "it reported no number";
}

TEST(Sweep, SmallerIsBetterWhereTheStudyMinimizes) {
  v1::StudyDetails details = Accuracies({{"", 64, {0.9, 0.4}}, {"", 128, {0.8, 0.5}}});
  details.mutable_study()->set_maximize(false);
  const Sweep sweep = SweepOf(details, std::nullopt, kNow);
  EXPECT_EQ(sweep.target, 0.5);
  EXPECT_EQ(sweep.groups[0].reached[0].step, 2);
}

// A pause, and slots that are more or fewer.
TEST(Sweep, CountsTheTimeInWhichSlotsWereHeld) {
  v1::StudyDetails details = Accuracies({{"linear", 64, {0.1, 0.2, 0.3, 0.4, 0.5}}});
  v1::Trial* trial = details.mutable_trials(0);
  trial->clear_spans();
  const auto hold = [trial](double from, double to, int slots) {
    v1::SlotSpan* span = trial->add_spans();
    span->set_from(kStart + from);
    span->set_to(to > 0 ? kStart + to : 0);
    while (slots-- > 0) span->add_slots();
  };
  hold(0, 10, 1);
  hold(30, 0, 4);
  const Sweep sweep = SweepOf(details, 0.5, kNow);
  EXPECT_DOUBLE_EQ(sweep.groups[0].reached[0].seconds, 10 + 20);
  EXPECT_DOUBLE_EQ(sweep.groups[0].reached[0].slot_seconds, 10 + 20 * 4);
}

TEST(Sweep, TheTableNamesTheSoonestTrialAndHowManyArrived) {
  const v1::StudyDetails details =
      Accuracies({{"linear", 64, {0.2, 0.9}}, {"linear", 64, {0.9}}, {"linear", 64, {0.3}}});
  const std::vector<std::string> lines = SweepLines(details, SweepOf(details, 0.9, kNow));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_THAT(lines[0], HasSubstr("time to 0.9"));
  EXPECT_THAT(lines[1], HasSubstr("2 of 3"));
  EXPECT_THAT(lines[1], HasSubstr("10s"));
}

}  // namespace
}  // namespace espalier::report
