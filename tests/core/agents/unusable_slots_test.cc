// Slots on which nothing is to be started: their GPU is in trouble, so their agent says.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "allocator/policies/policy.h"
#include "base/protocol.h"
#include "tests/core/core_fixture.h"

namespace espalier {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kLost[] = "GPU 0 (NVIDIA H200): GPU is lost";

class UnusableSlotsTest : public CoreTest {
 protected:
  void Lose(NodeId node, const std::vector<int>& slots) {
    AgentSlots event{node, {}};
    for (const int slot : slots) event.unusable[slot] = kLost;
    Step(event);
  }

  std::vector<int> StartsAt() {
    std::vector<int> slots;
    for (const StartReplicaCommand& start : starts_) slots.push_back(start.slot);
    return slots;
  }

  std::vector<ReplicaId> Members() {
    std::vector<ReplicaId> members;
    for (const Member& member : regroups_.at(0).membership.members)
      members.push_back(member.replica);
    return members;
  }
};

TEST_F(UnusableSlotsTest, NothingStartsThereUntilTheyCanBeUsedAgain) {
  const NodeId node = Join("gpus", 3);
  Lose(node, {0, 2});
  Step(CreateStudy{Spec(3), false});
  EXPECT_THAT(StartsAt(), ElementsAre(1));
  EXPECT_EQ(core_.Nodes().at(0).unusable, (std::map<int, std::string>{{0, kLost}, {2, kLost}}));
  EXPECT_FALSE(core_.Nodes().at(0).draining);
  EXPECT_EQ(core_.state().trials.size(), 1u) << "no configuration is drawn for them";
  Lose(node, {2});
  EXPECT_THAT(StartsAt(), ElementsAre(0));
  Lose(node, {});
  EXPECT_THAT(StartsAt(), ElementsAre(2));
}

TEST_F(UnusableSlotsTest, ATrialMovesToAFreeSlotByGrowingFirst) {
  StudySpec spec = Spec(1);
  spec.max_slots = 1;
  Step(CreateStudy{spec, false});
  const NodeId node = Join("gpus", 2);
  const ReplicaId first = Ready(starts_.at(0).replica);
  Form(regroups_);
  Lose(node, {0});
  ASSERT_THAT(StartsAt(), ElementsAre(1));
  EXPECT_TRUE(regroups_.empty()) << "it trains on meanwhile";
  const ReplicaId second = Ready(starts_.at(0).replica);
  EXPECT_EQ(Members(), (std::vector{first, second})) << "who joins takes its state from who leaves";
  Form(regroups_);
  ASSERT_FALSE(regroups_.empty());
  EXPECT_EQ(Members(), std::vector{second});
  Form(regroups_);
  Step(ReplicaExited{first, 0, 0, "", ""});
  EXPECT_EQ(trial().state, TrialState::kRunning);
  EXPECT_EQ(trial().restarts, 0);
  Wait(5);
  EXPECT_TRUE(starts_.empty()) << "and stays there";
}

TEST_F(UnusableSlotsTest, WithoutRoomATrialStaysAndIsNotPaused) {
  StudySpec spec = Spec(1);
  spec.max_slots = 1;
  Step(CreateStudy{spec, false});
  const NodeId node = Join("gpus", 1);
  const ReplicaId only = Ready(starts_.at(0).replica);
  Form(regroups_);
  Lose(node, {0});
  for (int i = 0; i < 60; ++i) Wait(1);
  EXPECT_TRUE(regroups_.empty());
  EXPECT_TRUE(core_.Nodes().at(0).draining) << "the node has nothing for anybody";
  // What it lives on is gone: its successor starts where it can.
  Step(ReplicaExited{only, 2, 0, "CUDA error: GPU is lost", ""});
  EXPECT_EQ(trial().state, TrialState::kPaused);
  EXPECT_THAT(trial().reason, HasSubstr("exited with code 2 on gpus slot 0, which cannot be used"));
  for (int i = 0; i < 60; ++i) Wait(1);
  EXPECT_TRUE(starts_.empty());
  const NodeId other = Join("other", 1);
  for (int i = 0; i < 60 && starts_.empty(); ++i) Wait(1);
  ASSERT_FALSE(starts_.empty());
  EXPECT_EQ(starts_.at(0).node, other);
  EXPECT_EQ(trial().restarts, 0);
}

TEST_F(UnusableSlotsTest, APlainProgramIsExcusedByAnyOfItsSlots) {
  StudySpec spec = Spec(1);
  spec.min_slots = 2;
  Step(CreateStudy{spec, false});
  const NodeId node = Join("gpus", 2);
  const ReplicaId plain = starts_.at(0).replica;
  Lose(node, {1});
  EXPECT_TRUE(starts_.empty() && stops_.empty()) << "it may not have noticed";
  Step(ReplicaExited{plain, 2, 0, "", ""});
  EXPECT_THAT(trial().reason,
              HasSubstr("exited with code 2 on gpus slots 0, 1, not all of which can be used"));
  Lose(node, {});
  ASSERT_THAT(StartsAt(), ElementsAre(0));
  EXPECT_THAT(starts_[0].more_slots, ElementsAre(1));
  EXPECT_EQ(trial().restarts, 0);
}

TEST_F(UnusableSlotsTest, AGroupGivesUpTheSlotThatCannotBeUsed) {
  Step(CreateStudy{Spec(1), false});
  const NodeId node = Join("gpus", 2);
  const ReplicaId first = Ready(starts_.at(0).replica);
  Form(regroups_);
  for (int i = 0; i < 30 && starts_.empty(); ++i) Wait(1);
  ASSERT_FALSE(starts_.empty());
  const ReplicaId second = Ready(starts_.at(0).replica);
  Form(regroups_);
  Lose(node, {0});
  for (int i = 0; i < 60 && regroups_.empty(); ++i) Wait(1);
  ASSERT_FALSE(regroups_.empty());
  EXPECT_EQ(Members(), std::vector{second}) << "the other one stays, whatever its rank";
  Form(regroups_);
  Step(ReplicaExited{first, 0, 0, "", ""});
  EXPECT_EQ(trial().restarts, 0);
}

TEST_F(UnusableSlotsTest, AnAgentThatComesBackTellsThemAnew) {
  AgentHello hello{"gpus", 2, {}};
  hello.unusable_slots[0] = kLost;
  Step(hello);
  Step(CreateStudy{Spec(2), false});
  EXPECT_THAT(StartsAt(), ElementsAre(1));
  const auto running = starts_.at(0);
  LiveReplica live;
  live.replica = running.replica;
  live.trial = running.trial;
  live.slot = 1;
  Step(AgentHello{"gpus", 2, {live}});
  EXPECT_THAT(StartsAt(), ElementsAre(0));
  EXPECT_TRUE(core_.Nodes().at(0).unusable.empty());
}

TEST_F(UnusableSlotsTest, OneThatAReplicaCouldNotUseIsLeftAloneForAWhileAndCostsNoRestart) {
  Step(CreateStudy{Spec(1), false});
  Join("gpus", 2);
  ASSERT_THAT(StartsAt(), ElementsAre(0));
  Step(ReplicaExited{starts_.at(0).replica, kSlotAtFaultExitCode, 0, "no CUDA-capable device", ""});
  EXPECT_EQ(trial().restarts, 0);
  EXPECT_THAT(core_.Nodes().at(0).unusable.at(0), HasSubstr("CUDA could not be used"));
  for (int i = 0; i < 10 && starts_.empty(); ++i) Wait(1);
  ASSERT_THAT(StartsAt(), ElementsAre(1)) << "the trial goes on elsewhere";
  EXPECT_EQ(trial().state, TrialState::kRunning);
  Ready(starts_.at(0).replica);
  for (int i = 0; i < 300; ++i) Wait(1);
  EXPECT_TRUE(core_.Nodes().at(0).unusable.empty());
  EXPECT_TRUE(std::any_of(study().decisions.begin(), study().decisions.end(), [](const auto& d) {
    return d.reason.find("slot 0 of gpus cannot be used: CUDA") != std::string::npos;
  }));
}

TEST_F(UnusableSlotsTest, AProgramThatBlamesOneSlotAfterTheOtherIsAtFaultItself) {
  Step(CreateStudy{Spec(1), false});
  Join("gpus", 8);
  int tried = 0;
  for (int i = 0; i < 60 && !Ended(trial().state); ++i) {
    if (starts_.empty()) {
      Wait(1);
      continue;
    }
    ++tried;
    Step(ReplicaExited{starts_.at(0).replica, kSlotAtFaultExitCode, 0, "no CUDA", ""});
  }
  EXPECT_EQ(trial().state, TrialState::kFail);
  EXPECT_EQ(tried, 4);
  EXPECT_EQ(core_.Nodes().at(0).unusable.size(), 3U);
}

// Two GPUs, on each of which two slots are.
class SharedGpus : public CoreTest, public ::testing::WithParamInterface<std::string> {};

TEST_P(SharedGpus, OneTrialGetsNoTwoSharesOfOne) {
  StudySpec spec = Spec(1);
  spec.policy = {GetParam(), {}};
  spec.max_slots = 4;
  Step(CreateStudy{spec, false});
  AgentHello hello{"gpus", 4, {}};
  hello.gpus = 2;
  Step(hello);
  std::set<int> gpus;
  std::size_t slots = 0;
  for (int i = 0; i < 120; ++i) {
    for (const StartReplicaCommand& start : std::vector(starts_)) {
      ++slots;
      gpus.insert(start.slot % 2);
      Ready(start.replica);
      if (!regroups_.empty()) Form(regroups_);
    }
    Wait(1);
    if (!regroups_.empty()) Form(regroups_);
  }
  EXPECT_GE(slots, 1U);
  EXPECT_EQ(gpus.size(), slots);
}

TEST_P(SharedGpus, ATrialThatNeedsMoreSlotsThanThereAreGpusRuns) {
  StudySpec spec = Spec(1);
  spec.policy = {GetParam(), {}};
  spec.min_slots = 3;
  Step(CreateStudy{spec, false});
  AgentHello hello{"gpus", 4, {}};
  hello.gpus = 2;
  Step(hello);
  for (int i = 0; i < 120 && starts_.empty(); ++i) Wait(1);
  EXPECT_FALSE(starts_.empty());
}

INSTANTIATE_TEST_SUITE_P(All, SharedGpus, ::testing::ValuesIn(Policies().Names()),
                         [](const auto& row) { return row.param; });

}  // namespace
}  // namespace espalier
