#include "tuner/server/agent_session.h"

#include <atomic>
#include <future>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace espalier {
namespace {

v1::ServiceMessage Stop(std::int64_t replica) {
  v1::ServiceMessage message;
  message.mutable_stop()->set_replica_id(replica);
  return message;
}

TEST(AgentSession, WritesInOrderAndOnlyTheNewestAcknowledgement) {
  std::promise<void> entered;
  std::promise<void> let_go;
  std::promise<void> acknowledged;
  std::vector<v1::ServiceMessage> written;
  AgentSession session(
      [&](const v1::ServiceMessage& message) {
        if (written.empty()) {
          entered.set_value();
          let_go.get_future().wait();
        }
        written.push_back(message);
        if (message.has_acknowledge()) acknowledged.set_value();
        return true;
      },
      [] {}, Time{});
  session.Send(Stop(1));
  entered.get_future().wait();
  session.Acknowledge(3);
  session.Send(Stop(2));
  session.Acknowledge(9);
  session.Acknowledge(5);
  let_go.set_value();
  acknowledged.get_future().wait();
  session.Close();
  ASSERT_EQ(written.size(), 3u);
  EXPECT_EQ(written[0].stop().replica_id(), 1);
  EXPECT_EQ(written[1].stop().replica_id(), 2);
  EXPECT_EQ(written[2].acknowledge().sequence(), 9);
}

TEST(AgentSession, CutsOffAnAgentThatDoesNotTakeItsMessages) {
  std::promise<void> entered;
  std::promise<void> let_go;
  std::atomic<int> cancels = 0;
  std::atomic<bool> first = true;
  AgentSession session(
      [&](const v1::ServiceMessage&) {
        if (first.exchange(false)) {
          entered.set_value();
          let_go.get_future().wait();
        }
        return true;
      },
      [&cancels] { ++cancels; }, Time{});
  session.Send(Stop(0));
  entered.get_future().wait();
  for (std::size_t i = 0; i < kMaxOutgoing; ++i) session.Send(Stop(1));
  EXPECT_EQ(cancels, 0);
  session.Send(Stop(2));
  EXPECT_EQ(cancels, 1);
  EXPECT_TRUE(session.cancelled());
  let_go.set_value();
}

TEST(AgentSession, BreaksTheStreamWhenAWriteFails) {
  std::promise<void> cancelled;
  AgentSession session([](const v1::ServiceMessage&) { return false; },
                       [&cancelled] { cancelled.set_value(); }, Time{});
  session.Send(Stop(1));
  cancelled.get_future().wait();
  session.Close();
  EXPECT_TRUE(session.cancelled());
}

}  // namespace
}  // namespace espalier
