// A group that is left with fewer replicas than its study's minimum, whatever the reason.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>

#include "tests/core/core_fixture.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;

class MinimumTest : public CoreTest {
 protected:
  StudySpec SpecOf(int least, int most) {
    StudySpec spec = Spec(1);
    spec.min_slots = least;
    spec.max_slots = most;
    return spec;
  }

  // A trial that trains on all slots of nodes "a" and "b". Its replicas, those of "a" first.
  std::vector<ReplicaId> TrainOnTwo(int least, int most, int slots_each = 1) {
    a_ = Join("a", slots_each);
    b_ = Join("b", slots_each);
    Step(CreateStudy{SpecOf(least, most), false});
    const std::size_t want = 2 * static_cast<std::size_t>(slots_each);
    MakeReady();
    Step(PinTrial{"s", 0, 2 * slots_each});  // it is not to wait until growing is worth it
    for (int i = 0; i < 60 && node_of_.size() < want; ++i) {
      MakeReady();
      Wait(1);
    }
    MakeReady();
    std::vector<ReplicaId> all;
    for (const NodeId node : {a_, b_}) {
      for (const auto& [replica, at] : node_of_) {
        if (at == node) all.push_back(replica);
      }
    }
    EXPECT_EQ(all.size(), want);
    EXPECT_EQ(core_.Activity(TrialId(1)).replicas, 2 * slots_each);
    Step(PinTrial{"s", 0, 0});
    TrainOn(core_.Activity(TrialId(1)).replicas > 0 ? all.front() : ReplicaId{}, 61);
    Step(FromReplica{all.front(), ReplicaCheckpoint{"/c/1"}});
    return all;
  }

  // Answers for all replicas that were started, and for all groups that are to form.
  void MakeReady() {
    for (int i = 0; i < 10 && (!starts_.empty() || !regroups_.empty()); ++i) {
      for (const StartReplicaCommand& start : std::vector(starts_)) {
        node_of_[start.replica] = start.node;
        const auto regroups = regroups_;
        Ready(start.replica);
        if (regroups_.empty()) regroups_ = regroups;
      }
      if (!regroups_.empty() && !regroups_.front().membership.members.empty()) Form(regroups_);
    }
  }

  // Those of the two nodes cannot reach one another, and all say so.
  void Cut(const std::vector<ReplicaId>& replicas) {
    for (const ReplicaId from : replicas) {
      ReplicaStuck stuck{trial().generation, 5};
      for (const ReplicaId to : replicas) {
        if (node_of_.at(from) == node_of_.at(to)) continue;
        stuck.contacts.push_back({to, "10.0.0.2:4711", Contact::kSilent, "timed out"});
      }
      Step(FromReplica{from, stuck});
    }
  }

  // Members form what they are told to, and leave where they are told to leave.
  void Obey(const std::vector<ReplicaId>& replicas) {
    for (int i = 0; i < 20; ++i) {
      if (!regroups_.empty() && !regroups_.front().membership.members.empty()) Form(regroups_);
      if (trial().state == TrialState::kRunning && core_.Activity(TrialId(1)).replicas == 0) break;
      Wait(1);
    }
    for (const ReplicaId replica : replicas) Step(ReplicaExited{replica, 0, 0, "", ""});
    Wait(1);
  }

  NodeId a_, b_;
  std::map<ReplicaId, NodeId> node_of_;
};

TEST_F(MinimumTest, TwoOfTwoThatAreCutWaitAndNoneGoesOnAlone) {
  const auto replicas = TrainOnTwo(2, 2);
  Cut(replicas);
  Obey(replicas);
  EXPECT_EQ(trial().state, TrialState::kPaused) << trial().reason;
  EXPECT_THAT(trial().reason, HasSubstr("has fewer than its minimum of 2"));
  EXPECT_TRUE(starts_.empty()) << "not on the nodes that cannot talk";
  EXPECT_EQ(trial().restarts, 0) << "it is not the trial's fault";
  const NodeId c = Join("c", 2);
  ASSERT_EQ(starts_.size(), 1u) << "there are enough again";
  EXPECT_EQ(starts_[0].node, c);
  EXPECT_EQ(trial().checkpoint, "/c/1");
  MakeReady();
  EXPECT_EQ(core_.Activity(TrialId(1)).replicas, 2);
}

TEST_F(MinimumTest, ThreeOfFourThatAreCutTwoAndTwoWait) {
  const auto replicas = TrainOnTwo(3, 4, 2);
  Cut(replicas);
  Obey(replicas);
  EXPECT_EQ(trial().state, TrialState::kPaused) << trial().reason;
  EXPECT_TRUE(starts_.empty());
}

TEST_F(MinimumTest, TwoOfFourThatAreCutTwoAndTwoGoOn) {
  const auto replicas = TrainOnTwo(2, 4, 2);
  Cut(replicas);
  EXPECT_EQ(regroups_.at(0).membership.members.size(), 2u);
  Form(regroups_);
  Wait(60);
  EXPECT_EQ(trial().state, TrialState::kRunning);
}

TEST_F(MinimumTest, OneGoesOnAloneWhereOneIsEnough) {
  const auto replicas = TrainOnTwo(1, 2);
  Cut(replicas);
  EXPECT_EQ(regroups_.at(0).membership.members.size(), 1u);
  Form(regroups_);
  Wait(60);
  EXPECT_EQ(trial().state, TrialState::kRunning);
  EXPECT_EQ(core_.Activity(TrialId(1)).replicas, 1);
}

// Nobody is out of reach, and still they do not come to train.
TEST_F(MinimumTest, WhereNobodyIsReachedThoseOfOneNodeDoNotGoOnAlone) {
  const auto replicas = TrainOnTwo(2, 2);
  for (int round = 1; round <= 3; ++round) {
    for (const ReplicaId replica : replicas) {
      Step(FromReplica{replica, ReplicaStuck{trial().generation, 5}});
    }
  }
  Obey(replicas);
  EXPECT_EQ(trial().restarts, 1);
  EXPECT_EQ(trial().state, TrialState::kRunning) << "from its checkpoint, with new replicas";
}

TEST_F(MinimumTest, ANodeThatIsLostLeavesNoneToGoOnAlone) {
  const auto replicas = TrainOnTwo(2, 2);
  Step(AgentGone{b_});
  Wait(60);
  Obey(replicas);
  EXPECT_EQ(trial().state, TrialState::kPaused) << trial().reason;
  std::string reasons;
  for (const Decision& decision : study().decisions) reasons += decision.reason + "\n";
  EXPECT_THAT(reasons, HasSubstr("a replica was lost with its agent on b; 1 goes on without it\n"));
  Join("c", 1);
  EXPECT_FALSE(starts_.empty());
}

TEST_F(MinimumTest, ANodeThatIsDrainedLeavesNoneToGoOnAlone) {
  const auto replicas = TrainOnTwo(2, 2);
  Step(AgentLeaving{b_, 20});
  Wait(15);
  Obey(replicas);
  EXPECT_EQ(trial().state, TrialState::kPaused) << trial().reason;
  EXPECT_TRUE(starts_.empty());
}

// What was planned on a node that drains is not started, and the others are too few.
TEST_F(MinimumTest, ANodeThatDrainsBeforeItsReplicaHasStartedLeavesNoneToGoOnAlone) {
  a_ = Join("a", 1);
  b_ = Join("b", 1);
  Step(CreateStudy{SpecOf(2, 2), false});
  ASSERT_EQ(starts_.size(), 1u);
  const ReplicaId first = starts_[0].replica;
  const NodeId other = starts_[0].node == a_ ? b_ : a_;
  Step(DrainNode{other == a_ ? "a" : "b"});
  Ready(first);
  if (!regroups_.empty() && !regroups_.front().membership.members.empty()) Form(regroups_);
  Obey({first});
  EXPECT_EQ(trial().state, TrialState::kPaused) << trial().reason;
}

// The second replica fails whenever it joins, and the trial cannot do without it.
TEST_F(MinimumTest, JoinsThatFailStartTheTrialAgainAndThenFailIt) {
  Join("a", 2);
  StudySpec spec = SpecOf(2, 2);
  spec.max_restarts = 2;
  Step(CreateStudy{spec, false});
  std::vector<StartReplicaCommand> starts = starts_;
  const auto step = [&](const Event& event) {
    Step(event);
    starts.insert(starts.end(), starts_.begin(), starts_.end());
  };
  int failed = 0;
  bool one_is_ready = false;
  for (int i = 0; i < 200 && trial().state != TrialState::kFail; ++i) {
    for (const StartReplicaCommand& start : std::exchange(starts, {})) {
      if (std::exchange(one_is_ready, true)) {
        step(ReplicaExited{start.replica, 1, 0, "boom", ""});
        ++failed;
      } else {
        step(FromReplica{start.replica, ReplicaReady{"host:1", {64, 64, 1, 64, true}, 10}});
      }
    }
    for (const RegroupCommand& regroup : std::vector(regroups_)) {
      if (!regroup.membership.members.empty()) {
        step(
            FromReplica{regroup.replica, ReplicaRegrouped{regroup.membership.generation, 0, 0.01}});
      } else {
        one_is_ready = false;
        step(ReplicaExited{regroup.replica, 0, 0, "", ""});
      }
    }
    now_ = After(now_, 1);
    if (regroups_.empty()) step(Tick{});
  }
  EXPECT_EQ(trial().state, TrialState::kFail);
  EXPECT_EQ(trial().restarts, 2);
  EXPECT_EQ(failed, 3 * 3) << "three of each start";
  EXPECT_THAT(trial().reason, HasSubstr("has fewer than its minimum of 2: 3 in a row that were to "
                                        "join failed, the last one exited with code 1: boom"));
}

}  // namespace
}  // namespace espalier
