// When nodes came and went, as views of the past show it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <string>

#include "tests/core/core_fixture.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class NodeEventsTest : public CoreTest {
 protected:
  static AgentHello Hello() {
    AgentHello hello{"oak", 2, {}};
    hello.gpu_type = "H200";
    hello.price_per_hour = 3.5;
    return hello;
  }

  void Lose(NodeId node) {
    Step(AgentGone{node});
    Wait(11);
  }

  // "+" for each that came, and "-" for each that went.
  static std::string WhatHappened(const Core& core) {
    std::string happened;
    for (const NodeSeen& event : core.state().node_events) happened += event.up ? '+' : '-';
    return happened;
  }

  const std::deque<NodeSeen>& events() { return core_.state().node_events; }
};

TEST_F(NodeEventsTest, ANodeThatComesAndIsLostIsWrittenDownTwice) {
  const NodeId oak = Step(Hello()).node();
  const Time came = now_;
  Lose(oak);
  const NodeTerms terms{
      .since = came, .slots = 2, .gpu_type = "H200", .spot = false, .price_per_hour = 3.5};
  ASSERT_EQ(WhatHappened(core_), "+-");
  EXPECT_EQ(events()[0], (NodeSeen{.id = oak, .up = true, .terms = terms}));
  EXPECT_EQ(events()[1].id, oak);
  EXPECT_EQ(events()[1].terms.since, now_);
  EXPECT_EQ(events()[1].terms.gpu_type, "H200");
  EXPECT_EQ(events()[1].why, "no word from its agent for 10 s");
}

TEST_F(NodeEventsTest, ALostNodeThatIsBackIsSeenAgainAndSoItIsAfterARestart) {
  const NodeId oak = Step(Hello()).node();
  Lose(oak);
  EXPECT_EQ(Step(Hello()).node(), oak);
  EXPECT_EQ(WhatHappened(core_), "+-+");
  Core restarted(core_.state(), CoreOptions{});
  EXPECT_EQ(restarted.state().node_events, events());
}

TEST_F(NodeEventsTest, AnAgentThatIsBackWithinItsLeaseWasNeverAway) {
  const NodeId oak = Step(Hello()).node();
  Step(AgentGone{oak});
  Wait(5);
  Step(Hello());
  Wait(20);
  EXPECT_EQ(WhatHappened(core_), "+");
}

TEST_F(NodeEventsTest, ANodeThatComesBackOtherwiseIsSeenAgain) {
  Step(Hello());
  AgentHello more = Hello();
  more.slots = 4;
  Step(more);
  ASSERT_EQ(WhatHappened(core_), "++");
  EXPECT_EQ(events()[1].terms.slots, 4);
}

TEST_F(NodeEventsTest, ANodeSaysWhyItGoes) {
  const NodeId oak = Step(Hello()).node();
  Step(AgentLeaving{oak, 60});
  Lose(oak);
  ASSERT_EQ(WhatHappened(core_), "+-");
  EXPECT_EQ(events()[1].why, "its agent said that it goes away");
}

TEST_F(NodeEventsTest, ANodeThatIsThereSoonAfterARestartWasThereAllTheTime) {
  Step(Hello());
  Core restarted(core_.state(), CoreOptions{});
  restarted.Step(now_, Tick{});
  restarted.Step(After(now_, 5), Hello());
  restarted.Step(After(now_, 30), Tick{});
  EXPECT_EQ(WhatHappened(restarted), "+");
}

TEST_F(NodeEventsTest, ANodeThatIsNotThereSoonAfterARestartIsGone) {
  Step(Hello());
  Core restarted(core_.state(), CoreOptions{});
  restarted.Step(now_, Tick{});
  const std::optional<Time> due = restarted.NextDeadline();
  ASSERT_TRUE(due) << "nothing else would make it look";
  EXPECT_EQ(*due, After(now_, 10));
  restarted.Step(*due, Tick{});
  ASSERT_EQ(WhatHappened(restarted), "+-");
  const NodeSeen& gone = restarted.state().node_events.back();
  EXPECT_EQ(gone.terms.since, *due);
  EXPECT_EQ(gone.terms.slots, 2);
  EXPECT_THAT(gone.why, HasSubstr("not come back"));
  restarted.Step(After(*due, 30), Hello());
  EXPECT_EQ(WhatHappened(restarted), "+-+");
}

TEST_F(NodeEventsTest, NothingIsSeenOfARefusedNode) {
  EXPECT_FALSE(Step(AgentHello{"oak", 0, {}}).status.ok());
  EXPECT_THAT(events(), IsEmpty());
}

}  // namespace
}  // namespace espalier
