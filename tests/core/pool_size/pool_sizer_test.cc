#include "tuner/core/pool_size/pool_sizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace espalier {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;

constexpr double kNodeStart_s = 10;
constexpr double kNodePatience_s = 3 * kNodeStart_s + 30;
constexpr double kLease_s = 10;

// A pool that runs no trials, so that its rule wants the least.
class PoolSizerTest : public ::testing::Test {
 protected:
  PoolSizerTest() { turn_.Begin(TimeFromSeconds(100)); }

  static PoolSizeOptions AtLeast(int nodes) {
    return {
        .rule = {"utility_price", {}},
        .templates = {{.slots = 1, .start_s = kNodeStart_s, .min_nodes = nodes, .max_nodes = 3}}};
  }

  // What the engine is told so many seconds later: "+pool-1" to start it, "-pool-1" to release it.
  std::vector<std::string> Look(PoolSizer& sizer, double later_s = 0, int client_slots = 0) {
    turn_.Begin(After(turn_.now(), later_s));
    const Pool pool;
    if (sizer.Due()) sizer.Resize(PoolSizeRequest{pool, {}, {}}, client_slots);
    std::vector<std::string> told;
    for (const NodeRequest& request : turn_.Finish().node_requests) {
      told.push_back((request.start ? "+" : "-") + request.name);
    }
    return told;
  }
  void Come(PoolSizer& sizer, std::int64_t id, const std::string& name) {
    sizer.NodeCame(name);
    Node& node = pool_.nodes[NodeId(id)];
    node.id = NodeId(id);
    node.name = name;
    node.slots = 1;
    node.connected = true;
  }

  Turn turn_{TunerState{}, [](const Change&) {}};
  PoolState pool_{turn_};
};

TEST_F(PoolSizerTest, NodesThatDoNotComeAreGivenUpAndAskedForAnew) {
  PoolSizer sizer(turn_, pool_, AtLeast(2), kLease_s);
  EXPECT_THAT(Look(sizer), ElementsAre("+pool-1", "+pool-2"));
  Come(sizer, 1, "pool-2");
  Come(sizer, 2, "of-its-own");
  EXPECT_THAT(turn_.Finish().nodes_joined, ElementsAre("pool-2")) << "as the engine is told";
  EXPECT_THAT(Look(sizer, kNodePatience_s - 1), IsEmpty());
  EXPECT_THAT(Look(sizer, 1), ElementsAre("-pool-1", "+pool-1"));
}

TEST_F(PoolSizerTest, ANodeMayWaitInTheEnginesQueueAndIsAskedForAgainMeanwhile) {
  PoolSizeOptions options = AtLeast(1);
  options.templates[0].queue_s = 1000;
  PoolSizer sizer(turn_, pool_, options, kLease_s);
  EXPECT_THAT(Look(sizer), ElementsAre("+pool-1"));
  EXPECT_THAT(Look(sizer, kNodePatience_s), ElementsAre("+pool-1"));
  EXPECT_THAT(Look(sizer, kNodePatience_s - 1), IsEmpty());
  EXPECT_THAT(Look(sizer, 1000), ElementsAre("-pool-1", "+pool-1"));
}

TEST_F(PoolSizerTest, ANodeThatIsLostIsReleasedBeforeItsNameIsAskedForAgain) {
  PoolSizer sizer(turn_, pool_, AtLeast(1), kLease_s);
  EXPECT_THAT(Look(sizer), ElementsAre("+pool-1"));
  Come(sizer, 1, "pool-1");
  EXPECT_THAT(Look(sizer, 10), IsEmpty());
  pool_.nodes.clear();
  EXPECT_THAT(Look(sizer, 10), ElementsAre("-pool-1", "+pool-1"));
}

TEST_F(PoolSizerTest, SlotsOfClientsComeOnTop) {
  PoolSizer sizer(turn_, pool_, AtLeast(0), kLease_s);
  EXPECT_THAT(Look(sizer), IsEmpty());
  EXPECT_EQ(sizer.Next(/*clients_ask=*/false), std::nullopt) << "nothing changes by itself";
  ASSERT_TRUE(sizer.Next(/*clients_ask=*/true).has_value());
  EXPECT_THAT(Look(sizer, SecondsBetween(turn_.now(), *sizer.Next(true)), 2),
              ElementsAre("+pool-1", "+pool-2"));
}

TEST_F(PoolSizerTest, ShrinksWhenItHasBeenTooLargeForAWhile) {
  PoolSizer sizer(turn_, pool_, AtLeast(1), kLease_s);
  Come(sizer, 1, "pool-1");
  Come(sizer, 2, "pool-2");
  EXPECT_THAT(Look(sizer), IsEmpty());
  EXPECT_THAT(Look(sizer, 10), IsEmpty());
  EXPECT_THAT(Look(sizer, 5), ElementsAre("-pool-1"));
  EXPECT_TRUE(pool_.Draining(NodeId(1)));
}

TEST_F(PoolSizerTest, AfterARestartItWaitsForTheNodesThatThereWere) {
  turn_.Emit(NodeRegistered{NodeId(1), "pool-1"});
  PoolSizer sizer(turn_, pool_, AtLeast(1), kLease_s);
  EXPECT_THAT(Look(sizer), IsEmpty());
  EXPECT_THAT(Look(sizer, kLease_s), ElementsAre("+pool-1"));
}

TEST_F(PoolSizerTest, OtherNodesAreNotTheEngines) {
  PoolSizer sizer(turn_, pool_, AtLeast(0), kLease_s);
  Come(sizer, 1, "pool-1");
  Come(sizer, 2, "pool-x");
  EXPECT_EQ(SlotsOfOtherNodes(pool_), 1);
  EXPECT_EQ(MostSlots(pool_, AtLeast(0).templates), 4);
}

PoolSizeOptions OfTemplates(int least_spot) {
  return {.rule = {"utility_price", {}},
          .templates = {{.slots = 1,
                         .price_per_hour = 1,
                         .start_s = kNodeStart_s,
                         .max_nodes = 2,
                         .name = "on-demand"},
                        {.slots = 1,
                         .price_per_hour = 0.3,
                         .start_s = kNodeStart_s,
                         .min_nodes = least_spot,
                         .max_nodes = 2,
                         .name = "spot",
                         .spot = true}}};
}

TEST_F(PoolSizerTest, EachTemplateKeepsItsLeastUnderItsName) {
  PoolSizer sizer(turn_, pool_, OfTemplates(1), kLease_s);
  EXPECT_THAT(Look(sizer), ElementsAre("+pool-spot-1"));
  Come(sizer, 1, "pool-spot-1");
  EXPECT_THAT(Look(sizer, 100), IsEmpty());
  EXPECT_EQ(sizer.Next(/*clients_ask=*/false), std::nullopt);
  EXPECT_EQ(MostSlots(pool_, OfTemplates(1).templates), 4);
}

TEST_F(PoolSizerTest, ATemplateWhoseNodesDoNotComeIsLeftOutForAWhile) {
  PoolSizer sizer(turn_, pool_, OfTemplates(0), kLease_s);
  EXPECT_THAT(Look(sizer, 0, 2), ElementsAre("+pool-on-demand-1", "+pool-on-demand-2"));
  EXPECT_THAT(Look(sizer, kNodePatience_s, 2),
              IsSupersetOf({"-pool-on-demand-1", "-pool-on-demand-2"}));
}

TEST_F(PoolSizerTest, NodesOfATemplateThatThePoolHasNoMoreAreReleased) {
  PoolSizer sizer(turn_, pool_, OfTemplates(0), kLease_s);
  Come(sizer, 1, "pool-1");
  Come(sizer, 2, "pool-gone-1");
  Come(sizer, 3, "else");
  EXPECT_THAT(Look(sizer), ElementsAre("-pool-1", "-pool-gone-1"));
  EXPECT_FALSE(pool_.Draining(NodeId(3)));
}

TEST(EngineNodeNames, TellTheTemplate) {
  EXPECT_EQ(EngineNodeName("", 7), "pool-7");
  EXPECT_EQ(EngineNodeName("a100-spot", 7), "pool-a100-spot-7");
  EXPECT_EQ(TemplateOf("pool-7"), "");
  EXPECT_EQ(TemplateOf("pool-a100-spot-7"), "a100-spot");
  for (const char* other : {"pool-", "pool-x", "pool-0", "pool--7", "pool-a-x", "pools-7", "a"}) {
    EXPECT_EQ(TemplateOf(other), std::nullopt) << other;
  }
}

}  // namespace
}  // namespace espalier
