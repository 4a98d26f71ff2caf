#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/core/core_fixture.h"
#include "tuner/core/estimates/compared_curves.h"

namespace espalier {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Studies of the pool whose trials tell of several metrics.
class Objectives : public CoreTest {};

TEST_F(Objectives, ATrialIsToldByAllOfItsMetrics) {
  ASSERT_EQ(Refused(Two(1)), "");
  Join(1);
  const ReplicaId replica = starts_.at(0).replica;
  Report(replica, 1, 0.5, {{"latency_ms", 9}, {"grad_norm", 2}});
  Report(replica, 2, 0.6, {});
  Report(replica, 3, 0.7, {{"latency_ms", 7}});
  ASSERT_EQ(trial().other_curves->size(), 1u);
  const std::vector<IntermediateValue>& latency = trial().other_curves->front();
  ASSERT_EQ(latency.size(), 2u);
  EXPECT_EQ(latency[0].step, 1);
  EXPECT_EQ(latency[1].value, 7);
  EXPECT_THAT(trial().other_values, ElementsAre(7));
  Step(ReplicaExited{replica, 0, 0, "", ""});
  EXPECT_EQ(trial().state, TrialState::kComplete);
  EXPECT_EQ(trial().value, 0.7);
  EXPECT_THAT(trial().other_values, ElementsAre(7));
  EXPECT_EQ(study().state, StudyState::kComplete);
}

TEST_F(Objectives, OneThatHasNotToldOfAMetricHasFailed) {
  ASSERT_EQ(Refused(Two(1)), "");
  Join(1);
  const ReplicaId replica = starts_.at(0).replica;
  Report(replica, 1, 0.5, {{"latency", 9}});
  Step(ReplicaExited{replica, 0, 0, "", ""});
  EXPECT_EQ(trial().state, TrialState::kFail);
  EXPECT_THAT(trial().reason, HasSubstr("has not told of metric \"latency_ms\""));
  EXPECT_THAT(trial().other_values, IsEmpty());
}

TEST_F(Objectives, WhatNeedsOneMetricIsRefusedByName) {
  StudySpec spec = Two(1);
  spec.target = 0.9;
  EXPECT_THAT(Refused(spec), HasSubstr("\"target\": a study of 2 metrics"));
  spec = Two(1);
  spec.terminator = {"stagnation", {}};
  EXPECT_THAT(Refused(spec), HasSubstr("\"terminator\""));
  spec = Two(1);
  spec.best_k = 3;
  EXPECT_THAT(Refused(spec), HasSubstr("\"promise\""));
  spec = Two(1);
  spec.from_files = {"runs", "", "", "x"};
  EXPECT_THAT(Refused(spec), HasSubstr("\"metric\""));
  spec = Two(1);
  spec.pruner = {"median", {}};
  EXPECT_THAT(Refused(spec), HasSubstr("give \"none\", \"promise\""));
  spec = Two(1);
  spec.directions.pop_back();
  EXPECT_THAT(Refused(spec), HasSubstr("a direction for each metric"));
}

// Five trials at once, each reporting twelve steps of falling curves; the last one is worse than
// the others in the first metric, and in the second by `ahead` better.
class ThreeSlots : public Objectives {
 protected:
  std::string ReasonOfLast(double ahead, BatchMode mode = BatchMode::kFixed) {
    StudySpec spec = Spec(5);
    spec.batch_mode = mode;
    spec.other_metrics = {"size"};
    spec.directions = {Direction::kMinimize, Direction::kMinimize};
    spec.pruner = {"promise", {}};
    spec.max_step = 40;
    EXPECT_EQ(Refused(spec), "");
    Join(5);
    const std::vector<StartReplicaCommand> starts = starts_;
    EXPECT_EQ(starts.size(), 5u);
    for (std::int64_t step = 1; step <= 12; ++step) {
      for (std::size_t i = 0; i < starts.size(); ++i) {
        const bool last = i + 1 == starts.size();
        const double fall = 0.5 * std::pow(static_cast<double>(step), -0.8);
        const double first = (last ? 0.6 : 0.1 + 0.02 * static_cast<double>(i)) + fall;
        const double second = (last ? 0.5 - ahead : 0.3 - 0.02 * static_cast<double>(i)) + fall;
        const double progress = 64 * static_cast<double>(step);
        Step(FromReplica{starts[i].replica,
                         ReplicaReport{step, first, progress, {{"size", second}}}});
      }
    }
    return core_.state().trials.at(starts.back().trial).reason;
  }
};

TEST_F(ThreeSlots, WhatIsBehindInAllIsPruned) {
  EXPECT_THAT(ReasonOfLast(0), HasSubstr("chance to end on the Pareto front"));
}

TEST_F(ThreeSlots, BatchesMayAdapt) {
  EXPECT_THAT(ReasonOfLast(0, BatchMode::kAdaptive),
              AllOf(HasSubstr("Pareto front"), HasSubstr("steps at equal progress")));
}

TEST_F(ThreeSlots, WhatLeadsInOneIsKeptWhereBatchesAdapt) {
  EXPECT_EQ(ReasonOfLast(0.4, BatchMode::kAdaptive), "");
}

TEST_F(ThreeSlots, WhatLeadsInOneIsKept) { EXPECT_EQ(ReasonOfLast(0.4), ""); }

}  // namespace
}  // namespace espalier
