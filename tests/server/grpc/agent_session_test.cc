#include "tuner/server/grpc/agent_session.h"

#include <vector>

#include "gtest/gtest.h"

namespace espalier {
namespace {

v1::ServiceMessage Stop(std::int64_t replica) {
  v1::ServiceMessage message;
  message.mutable_stop()->set_replica_id(replica);
  return message;
}

constexpr Time At(double s) { return Time{static_cast<std::int64_t>(s * 1e6)}; }

// A stream that does nothing by itself: the test says when a message is written.
class AgentSessionTest : public testing::Test {
 protected:
  AgentSession session_{{.write = [this](const v1::ServiceMessage* m) { written_.push_back(*m); },
                         .cancel = [this] { ++cancels_; },
                         .read_next = [this] { ++reads_; },
                         .end = [this] { ++ends_; }},
                        Time{}};
  std::vector<v1::ServiceMessage> written_;
  int cancels_ = 0;
  int reads_ = 0;
  int ends_ = 0;
};

TEST_F(AgentSessionTest, WritesInOrderAndOnlyTheNewestAcknowledgement) {
  session_.Send(Stop(1));
  session_.Acknowledge(3);
  session_.Send(Stop(2));
  session_.Acknowledge(9);
  session_.Acknowledge(5);
  EXPECT_EQ(written_.size(), 1u) << "one at a time";
  for (int i = 0; i < 3; ++i) session_.Written(true);
  ASSERT_EQ(written_.size(), 3u);
  EXPECT_EQ(written_[0].stop().replica_id(), 1);
  EXPECT_EQ(written_[1].stop().replica_id(), 2);
  EXPECT_EQ(written_[2].acknowledge().sequence(), 9);
}

TEST_F(AgentSessionTest, CutsOffAnAgentThatDoesNotTakeItsMessages) {
  for (std::size_t i = 0; i < kMaxOutgoing + 1; ++i)
    session_.Send(Stop(1));  // one is being written
  EXPECT_EQ(cancels_, 0);
  session_.Send(Stop(2));
  session_.Send(Stop(3));
  EXPECT_EQ(cancels_, 1);
  EXPECT_TRUE(session_.cancelled());
}

TEST_F(AgentSessionTest, BreaksTheStreamWhenAWriteFails) {
  session_.Send(Stop(1));
  session_.Send(Stop(2));
  session_.Written(false);
  EXPECT_EQ(cancels_, 1);
  EXPECT_EQ(written_.size(), 1u);
}

TEST_F(AgentSessionTest, EndsWhenNothingIsBeingWrittenAnyMore) {
  session_.Send(Stop(1));
  session_.Send(Stop(2));
  session_.Close();
  EXPECT_EQ(ends_, 0);
  session_.Written(true);
  EXPECT_EQ(ends_, 1);
  EXPECT_EQ(written_.size(), 1u) << "nothing new after Close";
  session_.Cancel();
  session_.Close();
  EXPECT_EQ(cancels_, 0);
  EXPECT_EQ(ends_, 1);
}

TEST_F(AgentSessionTest, IsNotReadOnWhileTooManyEventsAreUnderWay) {
  for (int i = 1; i < kMaxUnsettled; ++i) EXPECT_TRUE(session_.TakeEvent());
  EXPECT_FALSE(session_.TakeEvent());
  session_.Settled(At(1));
  session_.Settled(At(1));
  EXPECT_EQ(reads_, 1);
}

TEST_F(AgentSessionTest, IsNotSilentWhileTheServiceDoesNotListen) {
  session_.Heard(At(1));
  EXPECT_FALSE(session_.Silent(At(10), 10));
  EXPECT_TRUE(session_.Silent(At(11), 10));
  session_.TakeHello();
  EXPECT_FALSE(session_.Silent(At(100), 10));
  session_.Settled(At(100));
  EXPECT_EQ(reads_, 1);
  EXPECT_FALSE(session_.Silent(At(109), 10)) << "its time begins anew";
  EXPECT_TRUE(session_.Silent(At(110), 10));
}

}  // namespace
}  // namespace espalier
