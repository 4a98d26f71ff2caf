// Trials that have one of a list of sizes, and plain programs that are started again for another.

#include <algorithm>

#include "gmock/gmock.h"
#include "tests/core/core_fixture.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;

class SizeRestarts : public CoreTest {
 protected:
  StudySpec Restarting(std::int64_t trials) {
    StudySpec spec = Spec(trials);
    spec.slot_sizes = {1, 2};
    spec.max_slots = 2;
    spec.resize_by_restart = true;
    return spec;
  }

  // Two trials on a slot each, which have told a value after so many seconds.
  void StartTwo(const StudySpec& spec, double until_first_s = 1) {
    Step(CreateStudy{spec, false});
    Join(2);
    ASSERT_EQ(starts_.size(), 2U);
    first_ = starts_[0].replica;
    second_ = starts_[1].replica;
    now_ = After(now_, until_first_s);
    Step(TellValue{TrialId(1), 1, 0.5});
    Step(TellValue{TrialId(2), 1, 0.5});
    Wait(10);
    Step(TellValue{TrialId(2), 2, 0.5});
    Wait(3);
    EXPECT_TRUE(stops_.empty());
  }
  void EndFirst() {
    Step(ReplicaExited{first_, 0, 0, "", ""});
    Note();
    for (int i = 0; i < 3; ++i) {
      Wait(6);
      Note();
    }
  }
  void Note() { all_stops_.insert(all_stops_.end(), stops_.begin(), stops_.end()); }

  // A trial alone on eight slots, with steps of 10 s on two slots and so long ones on more. Returns
  // the slots of its last start.
  std::size_t LastSizeOfOne(double on_more_s) {
    StudySpec spec = Restarting(1);
    spec.slot_sizes = {1, 2, 4, 8};
    spec.max_slots = 8;
    Step(CreateStudy{spec, false});
    Join(8);
    StartReplicaCommand last = starts_.at(0);
    EXPECT_EQ(last.more_slots.size(), 1U) << "it is not known yet how it scales";
    for (std::int64_t step = 1; step < 60; ++step) {
      now_ = After(now_, last.more_slots.size() < 2 ? 10 : on_more_s);
      Step(TellValue{TrialId(1), step, 0.5});
      if (stops_.empty()) Wait(0.01);
      if (stops_.empty()) continue;
      Step(ReplicaExited{last.replica, -1, 15, "", ""});
      last = starts_.at(0);
    }
    return last.more_slots.size() + 1;
  }

  bool Saves(std::int64_t step, std::int64_t trial_id = 2) {
    const Reply reply = Step(AskVerdict{TrialId(trial_id), step, Question::kSave});
    EXPECT_TRUE(reply.status.ok()) << reply.status;
    Note();
    return reply.should_stop();
  }
  // The second trial, whose program asks, is to have the slot of the first one.
  void AskUntilItIsToGrow(std::int64_t trials = 2) {
    StartTwo(Restarting(trials));
    EXPECT_FALSE(Saves(1)) << "there is no other slot";
    EndFirst();
    EXPECT_TRUE(all_stops_.empty()) << "it asks";
  }

  bool Says(const std::string& words) {
    return std::any_of(study().decisions.begin(), study().decisions.end(), [&](const Decision& d) {
      return d.reason.find(words) != std::string::npos;
    });
  }

  ReplicaId first_, second_;
  std::vector<StopReplicaCommand> all_stops_;
};

TEST_F(SizeRestarts, APlainProgramGrowsWhenTheOtherHasEnded) {
  StartTwo(Restarting(2));
  EndFirst();
  ASSERT_FALSE(all_stops_.empty());
  EXPECT_EQ(all_stops_[0].replica, second_);
  EXPECT_EQ(all_stops_[0].grace_s, 5);
  EXPECT_EQ(trial(2).state, TrialState::kRunning) << "until it has ended";
  Step(TellValue{TrialId(2), 3, 0.4});  // it has come further meanwhile
  Step(ReplicaExited{second_, -1, 15, "", ""});
  ASSERT_EQ(starts_.size(), 1U);
  EXPECT_EQ(starts_[0].trial, TrialId(2));
  EXPECT_EQ(starts_[0].more_slots.size(), 1U);
  EXPECT_EQ(trial(2).state, TrialState::kRunning);
  EXPECT_EQ(trial(2).restarts, 0) << "that is no failure";

  Wait(20);
  Step(TellValue{TrialId(2), 3, 0.4});
  EXPECT_TRUE(trial(2).resizes.empty()) << "it is no further than it was";
  Wait(5);
  Step(TellValue{TrialId(2), 4, 0.3});
  ASSERT_EQ(trial(2).resizes.size(), 1U);
  const Resize& resize = trial(2).resizes[0];
  EXPECT_EQ(resize.from_replicas, 1);
  EXPECT_EQ(resize.to_replicas, 2);
  EXPECT_GT(resize.pause_s, 10);
  EXPECT_LT(resize.pause_s, 25.1) << "a step of the 25 s is training";
  EXPECT_TRUE(Says("the restart on 2 slots instead of 1 cost"));
  EXPECT_TRUE(Says("with 1 step done again"));
  Wait(10);
  EXPECT_TRUE(stops_.empty()) << "it has what it should";
}

TEST_F(SizeRestarts, RanksOfALauncherGrowOverBothNodes) {
  StudySpec spec = Restarting(2);
  spec.launch = {"ranks"};
  Step(CreateStudy{spec, false});
  std::vector<StartReplicaCommand> started;
  for (const char* const node : {"oak", "elm"}) {
    AgentHello hello{node, 1, {}};
    hello.spans_launches = true;
    Step(hello);
    ASSERT_EQ(starts_.size(), 1U);
    started.push_back(starts_[0]);
    now_ = After(now_, 1);
    Step(TellValue{starts_[0].trial, 1, 0.5});
  }
  Wait(10);
  Step(TellValue{started[1].trial, 2, 0.5});
  first_ = started[0].replica;
  EndFirst();
  ASSERT_FALSE(all_stops_.empty());
  EXPECT_EQ(all_stops_[0].replica, started[1].replica);
  Step(ReplicaExited{started[1].replica, -1, 15, "", ""});
  ASSERT_EQ(starts_.size(), 2U);
  for (int node = 0; node < 2; ++node) {
    EXPECT_THAT(starts_[static_cast<std::size_t>(node)].ranks_of_nodes,
                ::testing::ElementsAre(1, 1));
    EXPECT_EQ(starts_[static_cast<std::size_t>(node)].node_rank, node);
  }
  Wait(10);
  EXPECT_TRUE(stops_.empty()) << "it has what it should";
}

// It took 2000 s until its first value, and half of that is left to do.
TEST_F(SizeRestarts, WhatItCostsMustPay) {
  StudySpec spec = Restarting(2);
  spec.max_step = 3;
  StartTwo(spec, 2000);
  EndFirst();
  EXPECT_TRUE(all_stops_.empty());
}

TEST_F(SizeRestarts, AProgramThatAsksSavesAndEndsByItself) {
  AskUntilItIsToGrow();
  EXPECT_FALSE(Saves(1)) << "another rank, of those that go on at this step";
  EXPECT_TRUE(Saves(2));
  EXPECT_TRUE(Saves(2)) << "to each rank";
  EXPECT_FALSE(Saves(1));
  EXPECT_TRUE(starts_.empty());
  Step(ReplicaExited{second_, 0, 0, "", ""});
  ASSERT_EQ(starts_.size(), 1U);
  EXPECT_EQ(starts_[0].trial, TrialId(2));
  EXPECT_EQ(starts_[0].more_slots.size(), 1U);
  EXPECT_EQ(trial(2).state, TrialState::kRunning);
  EXPECT_EQ(trial(2).restarts, 0);
  EXPECT_TRUE(all_stops_.empty());
  EXPECT_FALSE(Saves(2)) << "it has what it should";
}

TEST_F(SizeRestarts, AProgramThatDoesNotEndInTimeIsStopped) {
  AskUntilItIsToGrow();
  EXPECT_TRUE(Saves(2));
  Wait(250);
  EXPECT_TRUE(stops_.empty());
  Wait(60);
  ASSERT_EQ(stops_.size(), 1U);
  EXPECT_EQ(stops_[0].replica, second_);
  EXPECT_EQ(stops_[0].grace_s, 5);
  EXPECT_TRUE(trial(2).failed_joins->reason.empty());
  Step(ReplicaExited{second_, -1, 15, "", ""});
  EXPECT_EQ(starts_.size(), 1U);
}

TEST_F(SizeRestarts, AProgramThatEndsBeforeItIsToldHasComeToItsEnd) {
  AskUntilItIsToGrow();
  Step(ReplicaExited{second_, 0, 0, "", ""});
  EXPECT_TRUE(starts_.empty());
  EXPECT_EQ(trial(2).state, TrialState::kComplete);
}

TEST_F(SizeRestarts, AProgramThatFailsBeforeItIsToldHasFailed) {
  AskUntilItIsToGrow();
  Step(ReplicaExited{second_, 1, 0, "", ""});
  EXPECT_TRUE(starts_.empty());
  EXPECT_EQ(trial(2).state, TrialState::kFail);
}

TEST_F(SizeRestarts, AProgramThatAsksSavesWhereItsStudyIsStopped) {
  StartTwo(Restarting(2));
  EXPECT_FALSE(Saves(1));
  EXPECT_FALSE(Saves(1, 1));
  Step(StopStudy{"s"});
  EXPECT_TRUE(stops_.empty());
  EXPECT_TRUE(Saves(2));
  EXPECT_TRUE(Saves(2, 1));
  Step(ReplicaExited{second_, 0, 0, "", ""});
  EXPECT_EQ(trial(2).state, TrialState::kPaused);
  Step(CancelTrial{TrialId(1), TrialState::kPruned, ""});
  ASSERT_EQ(stops_.size(), 1U) << "nothing goes on from what it would save";
  EXPECT_EQ(stops_[0].replica, first_);
}

TEST_F(SizeRestarts, AProgramThatEndsWithItsStoppedStudyGoesOnWithIt) {
  StartTwo(Restarting(2));
  EXPECT_FALSE(Saves(1));
  Step(StopStudy{"s"});
  EXPECT_TRUE(Step(TellValue{TrialId(2), 3, 0.5}).should_stop());
  Step(ReplicaExited{second_, 0, 0, "", ""});
  EXPECT_EQ(trial(2).state, TrialState::kPaused);
}

TEST_F(SizeRestarts, OnANodeThatGoesAwayItIsStoppedInTime) {
  StartTwo(Restarting(2));
  EXPECT_FALSE(Saves(1));
  Step(DrainNode{"node", false, 40});
  Wait(25);
  ASSERT_EQ(stops_.size(), 1U) << "the one that does not ask";
  EXPECT_EQ(stops_[0].replica, first_);
  EXPECT_TRUE(Saves(2));
  Wait(5);
  EXPECT_TRUE(stops_.empty());
  Wait(6);
  ASSERT_EQ(stops_.size(), 1U) << "5 s before the node is gone";
  EXPECT_EQ(stops_[0].replica, second_);
}

TEST_F(SizeRestarts, WhatAProgramWasToldOutlivesTheService) {
  AskUntilItIsToGrow();
  EXPECT_TRUE(Saves(2));
  const TrialId id(2);
  Core again(core_.state(), {});
  now_ = After(now_, 1);
  LiveReplica live;
  live.replica = second_;
  live.trial = id;
  live.slot = 1;
  again.Step(now_, AgentHello{"node", 2, {live}});
  EXPECT_TRUE(again.Step(now_, AskVerdict{id, 2, Question::kSave}).reply.should_stop());
  const StepResult ended = again.Step(After(now_, 1), ReplicaExited{second_, 0, 0, "", ""});
  EXPECT_NE(again.state().trials.at(id).state, TrialState::kComplete) << "it has saved";
  EXPECT_EQ(again.state().trials.at(id).restarts, 0);
}

TEST_F(SizeRestarts, OthersKeepTheSizeThatTheyWereStartedWith) {
  StudySpec spec = Restarting(2);
  spec.resize_by_restart = false;
  StartTwo(spec);
  EndFirst();
  EXPECT_TRUE(all_stops_.empty());
  EXPECT_EQ(core_.SlotsHeld(), 1);
}

TEST_F(SizeRestarts, ItTrainsOnUntilTheSlotsAreFree) {
  StartTwo(Restarting(2));
  Step(TellValue{TrialId(1), 2, 0.1, true});
  ASSERT_EQ(trial(1).state, TrialState::kComplete);
  for (int i = 0; i < 3; ++i) {
    Wait(2);
    EXPECT_TRUE(stops_.empty()) << "the process of the other one is still there";
  }
  EndFirst();
  EXPECT_FALSE(all_stops_.empty());
}

TEST_F(SizeRestarts, ItGrowsOnWhereItsValuesComeFaster) { EXPECT_EQ(LastSizeOfOne(5), 8U); }

TEST_F(SizeRestarts, ItGrowsNoFurtherWhereTheyDoNot) { EXPECT_LE(LastSizeOfOne(10), 2U); }

TEST_F(SizeRestarts, AStoppedStudyStartsNothingAgain) {
  StartTwo(Restarting(2));
  EndFirst();
  Step(StopStudy{"s"});
  Step(ReplicaExited{second_, -1, 15, "", ""});
  EXPECT_TRUE(starts_.empty());
  EXPECT_EQ(trial(2).state, TrialState::kPaused);
  EXPECT_EQ(core_.SlotsHeld(), 0);
  Step(ResumeStudy{"s", 0, 0});
  ASSERT_EQ(starts_.size(), 1U);
  EXPECT_EQ(starts_[0].more_slots.size(), 1U) << "nobody else wants the other slot";
}

TEST_F(SizeRestarts, ANodeThatIsLostMeanwhileIsNoFailure) {
  StartTwo(Restarting(2));
  EndFirst();
  Step(AgentGone{node_});
  for (int i = 0; i < 10; ++i) Wait(10);
  EXPECT_EQ(trial(2).state, TrialState::kPaused);
  EXPECT_EQ(trial(2).restarts, 0);
  Join("other", 1);
  ASSERT_EQ(starts_.size(), 1U);
  EXPECT_TRUE(starts_[0].more_slots.empty()) << "on what is there";
}

TEST_F(SizeRestarts, AUserMayPinOneOfItsSizes) {
  StartTwo(Restarting(2));
  Step(ReplicaExited{first_, 0, 0, "", ""});
  Join("large", 4);
  const absl::Status refused = Step(PinTrial{"s", 1, 3}).status;
  EXPECT_EQ(refused.message(), "trial 1 cannot have 3 slots: its study's sizes are 1 and 2");
  EXPECT_TRUE(Step(PinTrial{"s", 1, 1}).status.ok());
  EXPECT_TRUE(Step(PinTrial{"s", 1, 0}).status.ok());
}

TEST_F(SizeRestarts, AnElasticTrialGoesFromSizeToSize) {
  StudySpec spec = Spec(1);
  spec.slot_sizes = {1, 3};
  spec.max_slots = 3;
  Step(CreateStudy{spec, false});
  Join(4);
  Ready(starts_.at(0).replica);
  Form(regroups_);
  Wait(3);
  EXPECT_EQ(starts_.size(), 2U) << "three of four slots";
}

TEST_F(SizeRestarts, NoMoreThanAllowedAreOnOneNode) {
  StudySpec spec = Spec(1);
  spec.min_slots = spec.max_slots = 4;
  spec.slots_per_node = 2;
  Step(CreateStudy{spec, false});
  Join("a", 4);
  EXPECT_TRUE(starts_.empty()) << "two of its slots have no place";
  Join("b", 4);
  ASSERT_EQ(starts_.size(), 1U);
  EXPECT_EQ(starts_[0].more_slots.size(), 1U);
  Ready(starts_[0].replica);
  EXPECT_EQ(starts_.size(), 3U);
}

}  // namespace
}  // namespace espalier
