#include "tuner/cli/views/record.h"

#include <gtest/gtest.h>

#include "tests/cli/views/sample_study.h"

namespace espalier {
namespace {

TEST(SlotSeconds, SumsSpansAndCountsOpenOnesToNow) {
  const v1::StudyDetails details = SampleStudy();
  EXPECT_DOUBLE_EQ(SlotSeconds(details.trials(0), 0), 4 + 8 + 2);
  EXPECT_DOUBLE_EQ(SlotSeconds(details.trials(3), kSampleStart + 20), 8 + 4);
}

TEST(CountResizes, CountsChangesWithoutAGap) {
  v1::StudyDetails details = SampleStudy();
  EXPECT_EQ(CountResizes(details.trials(0)).grown, 1);
  EXPECT_EQ(CountResizes(details.trials(0)).shrunk, 1);
  // Let go of everything for a second: it came back, it did not grow.
  details.mutable_trials(3)->mutable_spans(0)->set_to(kSampleStart + 17);
  EXPECT_EQ(CountResizes(details.trials(3)).grown, 0);
}

TEST(CountResizes, LeavesOutProcessesThatLeaveAfterTheEnd) {
  v1::Trial trial;
  for (const int slots : {2, 1}) {
    v1::SlotSpan* span = trial.add_spans();
    span->set_from(slots == 2 ? 10 : 20);
    span->set_to(slots == 2 ? 20 : 20.01);
    for (int i = 0; i < slots; ++i) span->add_slots()->set_index(i);
  }
  EXPECT_EQ(CountResizes(trial).shrunk, 1);
  trial.set_ended_at(19.99);
  EXPECT_EQ(CountResizes(trial).shrunk, 0);
}

TEST(StepOfValue, IsOfTheValueThatCounts) {
  v1::StudyDetails details = SampleStudy();
  EXPECT_EQ(StepOfValue(details.study(), details.trials(0)), 2);
  EXPECT_EQ(StepOfValue(details.study(), details.trials(1)), 2);
  EXPECT_EQ(StepOfValue(details.study(), details.trials(2)), 0);
  details.mutable_trials(0)->set_value(0.9);  // its last, and not its best
  EXPECT_EQ(StepOfValue(details.study(), details.trials(0)), 3);
  details.mutable_trials(0)->set_value(0.7);  // that it ended with
  EXPECT_EQ(StepOfValue(details.study(), details.trials(0)), 0);
}

TEST(LanesOf, NamesSlotsByNodeAlsoWhenThePoolIsUnknown) {
  v1::StudyDetails details = SampleStudy();
  ASSERT_EQ(LanesOf(details).size(), 2u);
  EXPECT_EQ(LanesOf(details)[1].name, "local/1");
  details.clear_pool();
  ASSERT_EQ(LanesOf(details).size(), 2u);
  EXPECT_EQ(LanesOf(details)[1].name, "node 1/1");
  v1::NodeName& former = *details.add_former_nodes();
  former.set_id(1);
  former.set_name("oak");
  EXPECT_EQ(LanesOf(details)[1].name, "oak/1");
}

TEST(UtilisationOf, DividesHeldTimeByTheSlotsTime) {
  const v1::StudyDetails details = SampleStudy();
  const Utilisation use = UtilisationOf(details, kSampleStart + 20);
  // Trials held 14 + 4 + 1 + 12 slot-seconds of 2 slots in 20 s; 19 of 20 before the last start.
  EXPECT_DOUBLE_EQ(use.overall, 31.0 / 40);
  EXPECT_DOUBLE_EQ(use.until_last_start, 19.0 / 20);
}

}  // namespace
}  // namespace espalier
