#include "tuner/core/scheduling/work_left.h"

#include <gtest/gtest.h>

namespace espalier {
namespace {

// Held one slot for 40 s and is paused, after step 2.
Trial Paused() {
  Trial trial;
  trial.state = TrialState::kPaused;
  trial.values = {{1, 0.5, 0, Time{}, 0}, {2, 0.4, 0, Time{}, 0}};
  trial.spans = {{TimeFromSeconds(10), TimeFromSeconds(50), {{NodeId(1), 0}}}};
  return trial;
}

TEST(WorkLeft, OfAPausedTrialIsByItsLastReport) {
  const Trial trial = Paused();
  EXPECT_DOUBLE_EQ(ShareDone(trial, std::nullopt, 10), 0.2);
  EXPECT_DOUBLE_EQ(WorkLeft(trial, Job{}, 0.2, TimeFromSeconds(1000)), 160);
}

TEST(WorkLeft, OfARunningTrialIsByWhatItsReplicasTold) {
  Trial trial = Paused();
  trial.state = TrialState::kRunning;
  trial.spans.push_back({TimeFromSeconds(60), Time{}, {{NodeId(1), 1}}});
  EXPECT_DOUBLE_EQ(ShareDone(trial, 2.5, 10), 0.25);
  EXPECT_DOUBLE_EQ(WorkLeft(trial, Job{}, 0.25, TimeFromSeconds(100)), 3 * (40 + 40));
}

TEST(WorkLeft, IsUnknownWithoutAnEndOrAReport) {
  EXPECT_EQ(ShareDone(Paused(), std::nullopt, 0), 0);
  EXPECT_EQ(ShareDone(Trial{}, std::nullopt, 10), 0);
  EXPECT_EQ(WorkLeft(Paused(), Job{}, 0, TimeFromSeconds(100)), 0);
}

TEST(WorkLeft, IsNothingAtTheEnd) {
  EXPECT_EQ(ShareDone(Paused(), std::nullopt, 1), 1) << "more steps than its program had told of";
  EXPECT_EQ(WorkLeft(Paused(), Job{}, 1, TimeFromSeconds(100)), 0);
}

}  // namespace
}  // namespace espalier
