// Nodes of an engine: asked for, given up, drained and released.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/core_fixture.h"

namespace espalier {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr double kStart_s = 10;
constexpr double kPatience_s = 3 * kStart_s + 30;

CoreOptions Sized(int min_nodes = 0) {
  CoreOptions options;
  options.pool_size = PoolSizeOptions{
      .rule = {"utility_price", {}},
      .templates = {{.slots = 1, .start_s = kStart_s, .min_nodes = min_nodes, .max_nodes = 3}}};
  return options;
}

class PoolGrowthTest : public CoreTest {
 protected:
  PoolGrowthTest() : CoreTest(Sized()) {}

  std::vector<std::string> Asked() { return Names(true); }
  std::vector<std::string> Released() { return Names(false); }

  // A study of trials that cannot share, and its nodes, which train one each.
  std::vector<ReplicaId> TrainOn(int nodes) {
    StudySpec spec = Spec(nodes);
    spec.max_slots = 1;
    Step(CreateStudy{spec, false});
    std::vector<ReplicaId> replicas;
    for (const std::string& name : Asked()) {
      nodes_.push_back(Join(name, 1));
      for (const StartReplicaCommand& start : starts_) replicas.push_back(start.replica);
    }
    for (const ReplicaId replica : replicas) {
      Ready(replica);
      Form(regroups_);
    }
    return replicas;
  }

  std::vector<std::string> Reasons() {
    std::vector<std::string> reasons;
    for (const Decision& decision : study().decisions) {
      if (decision.kind == DecisionKind::kPool) reasons.push_back(decision.reason);
    }
    return reasons;
  }

  std::vector<NodeId> nodes_;

 private:
  std::vector<std::string> Names(bool start) {
    std::vector<std::string> names;
    for (const NodeRequest& request : node_requests_) {
      if (request.start == start) names.push_back(request.name);
    }
    return names;
  }
};

TEST_F(PoolGrowthTest, AsksOnceForWhatAStudyNeedsAndSaysWhy) {
  Step(CreateStudy{Spec(2), false});
  EXPECT_THAT(Asked(), ElementsAre("pool-1", "pool-2"));
  EXPECT_THAT(Reasons(), ElementsAre(HasSubstr("pool grows from 0 to 2 nodes: ")));
  EXPECT_EQ(study().decisions.back().to_slots, 2);
  for (int i = 0; i < 5; ++i) {
    Wait(5);
    EXPECT_THAT(node_requests_, IsEmpty()) << "they are on their way";
  }
  Join("pool-1", 1);
  EXPECT_EQ(starts_.size(), 1u);
}

TEST_F(PoolGrowthTest, ANodeThatNeverComesIsGivenUpAndAskedForAgain) {
  Step(CreateStudy{Spec(1), false});
  ASSERT_THAT(Asked(), ElementsAre("pool-1"));
  ASSERT_TRUE(core_.NextDeadline().has_value());
  Wait(kPatience_s + 0.1);
  EXPECT_THAT(Released(), ElementsAre("pool-1")) << "should it come after all";
  EXPECT_THAT(Asked(), ElementsAre("pool-1"));
  EXPECT_FALSE(node_requests_.front().start) << "the old one goes before the new one comes";
  EXPECT_THAT(Reasons(), Contains(HasSubstr("pool-1 was asked for and did not come within 60 s")));
}

TEST_F(PoolGrowthTest, ShrinksAfterAWhileByWhatIsEmpty) {
  const std::vector<ReplicaId> replicas = TrainOn(2);
  ASSERT_EQ(replicas.size(), 2u);
  Step(FromReplica{replicas[0], ReplicaFinished{1.0}});
  Step(ReplicaExited{replicas[0], 0, 0, "", ""});
  for (int i = 0; i < 3; ++i) {
    Wait(5);
    EXPECT_THAT(Released(), IsEmpty()) << "something might still come";
  }
  Wait(6);
  Wait(6);
  EXPECT_THAT(Reasons(), Contains(HasSubstr("pool shrinks from 2 to 1 node: ")));
  EXPECT_TRUE(core_.Nodes().at(0).draining);
  EXPECT_FALSE(core_.Nodes().at(1).draining);
  Step(AgentGone{nodes_[0]});
  Wait(0);
  EXPECT_EQ(core_.Nodes().size(), 1u) << "nobody waits for it";
}

TEST_F(PoolGrowthTest, ANodeIsReleasedOnlyWhenItIsEmpty) {
  const std::vector<ReplicaId> replicas = TrainOn(1);
  ASSERT_EQ(replicas.size(), 1u);
  Step(DrainNode{"pool-1"});
  EXPECT_THAT(Released(), IsEmpty()) << "a trial trains there";
  Wait(6);
  EXPECT_THAT(Released(), IsEmpty());
  Step(FromReplica{replicas[0], ReplicaFinished{1.0}});
  Step(ReplicaExited{replicas[0], 0, 0, "", ""});
  EXPECT_THAT(Released(), ElementsAre("pool-1")) << "a drained one too";
  Wait(5);
  EXPECT_THAT(Released(), IsEmpty());
  Wait(31);
  EXPECT_THAT(Released(), Contains("pool-1")) << "it is still here: the word was lost";
}

TEST_F(PoolGrowthTest, ATrialThatWaitsForItsCheckpointIsWorkForTheNextNode) {
  StudySpec spec = Spec(1);
  spec.max_slots = 1;
  Step(CreateStudy{spec, false});
  ASSERT_THAT(Asked(), ElementsAre("pool-1"));
  AgentHello hello{"pool-1", 1, {}};
  hello.shared_folder = "mark";
  const NodeId node = Step(hello).node();
  const ReplicaId replica = Ready(starts_.at(0).replica);
  Form(regroups_);
  Step(FromReplica{replica, ReplicaCheckpoint{"/a/step-10.pt", 10, "step-10.pt", "print"}});
  Step(AgentGone{node});
  std::vector<std::string> asked = Asked();
  for (int i = 0; i < 10 && asked.empty(); ++i) {
    Wait(5);
    asked = Asked();
  }
  ASSERT_EQ(asked.size(), 1u) << "it has lain still since its only node was lost";
  hello.node_name = asked.front();
  Step(hello);
  ASSERT_EQ(starts_.size(), 1u);
  EXPECT_EQ(starts_[0].from.step, 10);
}

TEST_F(PoolGrowthTest, ADrainedNodeIsReplacedByOneOfAnotherName) {
  TrainOn(1);
  Step(DrainNode{"pool-1"});
  std::vector<std::string> asked = Asked();
  for (int i = 0; i < 3 && asked.empty(); ++i) {
    Wait(5);
    asked = Asked();
  }
  EXPECT_THAT(asked, ElementsAre("pool-2"));
}

TEST_F(PoolGrowthTest, ANodeThatDrainsStaysWhenItIsNeededAgain) {
  const std::vector<ReplicaId> replicas = TrainOn(2);
  // The second trial is pinned to its node by being alone there; the pool has become too large.
  Step(FromReplica{replicas[0], ReplicaFinished{1.0}});
  Step(ReplicaExited{replicas[0], 0, 0, "", ""});
  for (int i = 0; i < 3; ++i) Wait(5);
  StudySpec more = Spec(1);
  more.name = "more";
  Step(CreateStudy{more, false});
  Wait(5);
  Wait(31);
  EXPECT_THAT(Released(), IsEmpty());
  EXPECT_FALSE(core_.Nodes().at(0).draining) << "the patience begins anew";
}

TEST_F(PoolGrowthTest, NothingWaitsForTimeInAnIdlePool) {
  Wait(1);
  EXPECT_FALSE(core_.NextDeadline().has_value());
}

class PoolOfAtLeastOne : public CoreTest {
 protected:
  PoolOfAtLeastOne() : CoreTest(Sized(1)) {}
};

TEST_F(PoolOfAtLeastOne, StartsItWithoutAStudyAndKeepsItAfterARestart) {
  Wait(1);
  ASSERT_EQ(node_requests_.size(), 1u);
  const NodeId node = Join("pool-1", 1);
  Core restarted(core_.state(), Sized(1));
  EXPECT_THAT(restarted.Step(now_, Tick{}).node_requests, IsEmpty())
      << "the nodes that there were have their lease to come back";
  EXPECT_EQ(restarted.Step(now_, AgentHello{"pool-1", 1, {}}).reply.node(), node);
  for (int i = 0; i < 20; ++i) {
    now_ = After(now_, 5);
    EXPECT_THAT(restarted.Step(now_, Tick{}).node_requests, IsEmpty()) << "it is known by its name";
  }
  Core alone(core_.state(), Sized(1));
  alone.Step(now_, Tick{});
  const auto late = alone.Step(After(now_, 11), Tick{}).node_requests;
  ASSERT_EQ(late.size(), 1u) << "it did not come back";
  EXPECT_TRUE(late[0].start);
}

}  // namespace
}  // namespace espalier
