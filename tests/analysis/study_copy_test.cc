#include "tuner/analysis/study_copy.h"

#include <gtest/gtest.h>

namespace espalier {
namespace {

// A state with one study of five trials, each with a value and two reports.
TunerState FiveTrials() {
  TunerState state;
  Study& study = state.studies[StudyId(1)];
  study.id = StudyId(1);
  study.spec.name = "s";
  for (int i = 0; i < 5; ++i) {
    const TrialId id(i + 10);
    study.trials.push_back(id);
    Trial& trial = state.trials[id];
    trial.id = id;
    trial.study = study.id;
    trial.number = i;
    trial.value = i;
    trial.other_values = {-1.0 * i};
    trial.attributes.system["a"] = "1";
    trial.values.resize(2);
    trial.values[0].step = 1;
    trial.values[1].step = 2;
  }
  return state;
}

TEST(StudyCopier, GoesOnWhereItWasAndTakesWhatCameMeanwhile) {
  TunerState state = FiveTrials();
  StudyCopier copier(4);
  EXPECT_FALSE(copier.GoOn(state, state.studies.at(StudyId(1)), 3));
  Study& study = state.studies[StudyId(1)];
  study.suggestions.emplace_back().name = "late";
  EXPECT_TRUE(copier.GoOn(state, study, 3));
  const StudyCopy copy = copier.Take();
  EXPECT_EQ(copy.head.spec.name, "s");
  ASSERT_EQ(copy.head.suggestions.size(), 1u);
  ASSERT_EQ(copy.trials.size(), 5u);
  for (int i = 0; i < 5; ++i) {
    const TrialCopy& trial = copy.trials[static_cast<std::size_t>(i)];
    EXPECT_EQ(trial.id, TrialId(i + 10));
    EXPECT_EQ(trial.values, (std::vector<double>{1.0 * i, -1.0 * i}));
    EXPECT_TRUE(trial.reported);
    // Only the last one is copied in full.
    EXPECT_EQ(trial.reports.size(), i == 4 ? 2u : 0u) << i;
    EXPECT_EQ(trial.attributes.system.size(), i == 4 ? 1u : 0u) << i;
  }
}

}  // namespace
}  // namespace espalier
