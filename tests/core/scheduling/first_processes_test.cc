#include <gtest/gtest.h>

#include "tests/core/core_fixture.h"

namespace espalier {
namespace {

using FirstProcesses = CoreTest;

TEST_F(FirstProcesses, APlainProgramHasAllSlotsOfItsTrialAndAnElasticOneItsOwn) {
  StudySpec spec = Spec(2);
  spec.min_slots = 2;
  Step(CreateStudy{spec, false});
  Join(4);
  ASSERT_EQ(starts_.size(), 2U);
  const StartReplicaCommand plain = starts_[0];
  const StartReplicaCommand elastic = starts_[1];
  EXPECT_EQ(plain.slot, 0);
  EXPECT_EQ(plain.more_slots, std::vector<int>{1});
  EXPECT_EQ(elastic.slot, 2);
  EXPECT_EQ(elastic.more_slots, std::vector<int>{3});
  const std::vector<Slot> held = {{node_, 0}, {node_, 1}};
  EXPECT_EQ(trial(1).spans.back().slots, held) << "it is on record with both";
  EXPECT_EQ(core_.SlotsHeld(), 4);
  Ready(elastic.replica);
  ASSERT_EQ(starts_.size(), 1U) << "the other one joins it";
  EXPECT_EQ(starts_[0].trial, elastic.trial);
  EXPECT_EQ(starts_[0].slot, 3);
  EXPECT_TRUE(starts_[0].more_slots.empty());
  EXPECT_EQ(core_.SlotsHeld(), 4);

  // After a crash of the service its agent says what the first process was started with.
  Core restored(TunerState(core_.state()), {});
  AgentHello hello{"node", 4, {}};
  for (const auto& [start, ready] :
       {std::pair(plain, false), {elastic, true}, {starts_[0], true}}) {
    LiveReplica live;
    live.replica = start.replica;
    live.trial = start.trial;
    live.slot = start.slot;
    live.more_slots = start.more_slots;
    if (ready) live.ready = ReplicaReady{"host:1", {64, 64, 1, 64, true}, 10};
    hello.replicas.push_back(live);
  }
  restored.Step(After(now_, 1), hello);
  EXPECT_EQ(restored.SlotsHeld(), 4);
  EXPECT_EQ(restored.state().trials.at(plain.trial).spans.back().slots, held);
  Step(TellValue{plain.trial, 1, 0.5});
  Step(ReplicaExited{plain.replica, 0, 0, "", ""});
  EXPECT_EQ(core_.SlotsHeld(), 2);
  EXPECT_TRUE(starts_.empty() || starts_[0].trial == elastic.trial);
}

TEST_F(FirstProcesses, WhatIsLeftOfAPlainProgramKeepsItsSlotsUntilItIsGone) {
  StudySpec spec = Spec(3);
  spec.min_slots = 2;
  Step(CreateStudy{spec, false});
  Join(3);
  ASSERT_EQ(starts_.size(), 1U);
  const StartReplicaCommand first = starts_[0];
  Step(StopStudy{"s"});
  ASSERT_EQ(stops_.size(), 1U);
  Step(ResumeStudy{"s", 0, 0});
  EXPECT_TRUE(starts_.empty()) << "one slot of three is free";
  Step(ReplicaExited{first.replica, -1, 15, "", ""});
  ASSERT_EQ(starts_.size(), 1U);
  EXPECT_EQ(starts_[0].more_slots, std::vector<int>{1});
}

TEST_F(FirstProcesses, OfSeveralRanksTheOneThatFailedIsTheReason) {
  StudySpec spec = Spec(2);
  spec.min_slots = 2;
  spec.launch = {"ranks"};
  Step(CreateStudy{spec, false});
  Join(4);
  ASSERT_EQ(starts_.size(), 2U);
  ReplicaExited failed{starts_[0].replica, 1, 0, "boom", ""};
  failed.rank = "rank 1 of 2 on oak";
  ReplicaExited ended{starts_[1].replica, -1, 9, "", "ended with 0, and others ran on"};
  ended.rank = "rank 0 of 2 on oak";
  Step(failed);
  Step(ended);
  EXPECT_EQ(trial(1).reason, "rank 1 of 2 on oak exited with code 1");
  EXPECT_EQ(trial(2).reason, "rank 0 of 2 on oak ended with 0, and others ran on");
}

TEST_F(FirstProcesses, APlainProgramStartsWhereMostOfItsSlotsAre) {
  StudySpec spec = Spec(1);
  spec.min_slots = 4;
  Join("small", 1);
  const NodeId large = Join("large", 3);
  Step(CreateStudy{spec, false});
  ASSERT_EQ(starts_.size(), 1U);
  EXPECT_EQ(starts_[0].node, large);
  EXPECT_EQ(starts_[0].more_slots, (std::vector<int>{1, 2})) << "those of its own node";
}

}  // namespace
}  // namespace espalier
