#include "trial_runner/agent/ranks/end_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <optional>
#include <utility>

#include "base/file_descriptor.h"
#include "trial_runner/agent/ranks/rank_messages.h"

namespace espalier {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// A process that ends when it is told to.
class Child {
 public:
  Child() {
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe(ends.data()), 0);
    pid_ = fork();
    if (pid_ == 0) {
      char byte = 0;
      _exit(read(ends[0], &byte, 1) == 1 ? 3 : 4);
    }
    close(ends[0]);
    tell_ = FileDescriptor(ends[1]);
  }
  ~Child() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  FileDescriptor Watched() const {
    return FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  }
  // Returns when it has; nobody has waited for it yet.
  void End() {
    EXPECT_EQ(write(tell_.get(), "!", 1), 1);
    siginfo_t how{};
    EXPECT_EQ(waitid(P_PID, static_cast<id_t>(pid_), &how, WEXITED | WNOWAIT), 0);
    EXPECT_EQ(how.si_status, 3);
  }

 private:
  pid_t pid_ = 0;
  FileDescriptor tell_;
};

TEST(EndOrder, IsTheSystemsHoweverLateOneLooks) {
  for (const bool turned : {false, true}) {
    std::array<Child, 3> children;
    EndOrder order;
    for (int i = 0; i < 3; ++i) order.Watch(i, children[static_cast<std::size_t>(i)].Watched());
    EXPECT_THAT(order.Take(), IsEmpty());
    for (const std::size_t next : {turned ? 2u : 0u, turned ? 0u : 2u, 1u}) children[next].End();
    EXPECT_THAT(order.Take(), ElementsAre(turned ? 2 : 0, turned ? 0 : 2, 1));
    EXPECT_THAT(order.Take(), IsEmpty()) << "once each";
  }
}

TEST(EndOrder, ThoseThatHadEndedBeforeHaveNoPlace) {
  std::array<Child, 2> children;
  EndOrder order;
  order.Watch(0, children[0].Watched());
  children[1].End();
  order.Watch(1, children[1].Watched());
  EXPECT_THAT(order.Take(), IsEmpty());
  children[0].End();
  EXPECT_THAT(order.Take(), ElementsAre(0));
}

TEST(RankMessages, OneBringsTheRanksProcess) {
  std::array<int, 2> ends{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
  const FileDescriptor runner(ends[0]);
  const FileDescriptor supervisor(ends[1]);
  Child child;
  ASSERT_TRUE(SendMessage(runner, {.rank = 1}));
  ASSERT_TRUE(
      SendMessage(runner, {.kind = RankMessage::Kind::kStarted, .rank = 1}, child.Watched()));
  bool gone = false;
  std::optional<HeardMessage> heard = ReadMessage(supervisor, gone);
  ASSERT_TRUE(heard.has_value());
  EXPECT_FALSE(heard->process.open());
  heard = ReadMessage(supervisor, gone);
  ASSERT_TRUE(heard.has_value());
  EXPECT_EQ(heard->said.kind, RankMessage::Kind::kStarted);
  EndOrder order;
  order.Watch(heard->said.rank, std::move(heard->process));
  child.End();
  EXPECT_THAT(order.Take(), ElementsAre(1));
  EXPECT_FALSE(ReadMessage(supervisor, gone).has_value());
  EXPECT_FALSE(gone);
}

}  // namespace
}  // namespace espalier
