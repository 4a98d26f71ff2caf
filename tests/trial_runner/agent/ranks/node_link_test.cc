#include "trial_runner/agent/ranks/node_link.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <string>

#include "base/file_descriptor.h"
#include "control.pb.h"
#include "trial_runner/agent/processes/frames.h"
#include "trial_runner/agent/ranks/rank_end.h"

namespace espalier {
namespace {

class NodeLinkTest : public testing::Test {
 protected:
  NodeLinkTest() {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    agent_ = FileDescriptor(ends[0]);
    own_ = FileDescriptor(ends[1]);
  }
  // The next message that the agent finds.
  v1::ReplicaMessage Said() {
    std::array<char, 1024> chunk;
    v1::ReplicaMessage message;
    while (true) {
      const auto frame = reader_.Next();
      if (frame.ok() && frame->has_value()) {
        EXPECT_TRUE(message.ParseFromString(**frame));
        return message;
      }
      const ssize_t got = read(agent_.get(), chunk.data(), chunk.size());
      if (got <= 0) return message;
      reader_.Append({chunk.data(), static_cast<std::size_t>(got)});
    }
  }
  void Order(const std::string& bytes) {
    ASSERT_EQ(write(agent_.get(), bytes.data(), bytes.size()), std::ssize(bytes));
  }
  static std::string Meeting(const std::string& address) {
    v1::ReplicaCommand command;
    command.mutable_ranks_meet()->set_address(address);
    return Frame(command.SerializeAsString());
  }

  FileDescriptor agent_;
  FileDescriptor own_;
  FrameReader reader_;
};

TEST_F(NodeLinkTest, SaysThatRanksWaitAndHowLongAgoOneFailed) {
  NodeLink link(own_.get());
  link.TellWaiting("10.0.0.1:7100");
  EXPECT_EQ(Said().ranks_wait().address(), "10.0.0.1:7100");
  RankEnd end{.exit_code = 3, .signal = 0, .at_ns = RankClock_ns() - 2'000'000'000};
  end.noted = true;
  link.TellFailed(end);
  const v1::RanksFailed failed = Said().ranks_failed();
  EXPECT_EQ(failed.exit_code(), 3);
  EXPECT_GE(failed.ago_s(), 2);
  EXPECT_TRUE(failed.noted());
  end.at_ns = RankClock_ns() + 3'600'000'000'000;
  link.TellFailed(end);
  EXPECT_EQ(Said().ranks_failed().ago_s(), 0) << "the clock was set back";
}

TEST_F(NodeLinkTest, SaysWhichRankHadLeftAndHowLongAgo) {
  NodeLink link(own_.get());
  link.TellLeft(2, {.exit_code = 0, .at_ns = RankClock_ns() - 3'000'000'000});
  const v1::RanksLeft left = Said().ranks_left();
  EXPECT_EQ(left.rank(), 2);
  EXPECT_GE(left.ago_s(), 3);
}

TEST_F(NodeLinkTest, HearsWhereToMeetAndWhenNothingMoreComes) {
  NodeLink link(own_.get());
  EXPECT_EQ(link.TakeMeeting(), std::nullopt);
  const std::string meeting = Meeting("10.0.0.1:7100");
  Order(meeting.substr(0, 7));
  EXPECT_EQ(link.TakeMeeting(), std::nullopt);
  // What it does not know is passed over.
  v1::ReplicaCommand regroup;
  regroup.mutable_regroup();
  Order(meeting.substr(7) + Frame(regroup.SerializeAsString()));
  EXPECT_EQ(link.TakeMeeting(), "10.0.0.1:7100");
  EXPECT_FALSE(link.gone());
  agent_.Close();
  EXPECT_EQ(link.TakeMeeting(), std::nullopt);
  EXPECT_TRUE(link.gone());
  link.TellWaiting("");  // which is no use, and no harm
}

}  // namespace
}  // namespace espalier
