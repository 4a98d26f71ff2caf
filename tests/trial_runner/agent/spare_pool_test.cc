#include "trial_runner/agent/spare_pool.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <utility>
#include <vector>

#include "trial_runner/agent/processes/launch.h"

namespace espalier {
namespace {

v1::StartReplica Start(std::int64_t replica_id) {
  v1::StartReplica start;
  start.set_replica_id(replica_id);
  start.set_trial_id(1);
  return start;
}

// A shell that has said something and waits for an answer.
std::unique_ptr<ReplicaProcess> Shell(std::int64_t replica_id) {
  LaunchOrder order;
  order.command = {"/bin/sh", "-c", "printf 'x' >&3; head -c 1 <&3; exit 0"};
  order.directory = "/";
  order.log_path = "/dev/null";
  absl::StatusOr<LaunchedProcess> launched = Launch(order);
  EXPECT_TRUE(launched.ok()) << launched.status();
  pollfd said{launched->control.get(), POLLIN, 0};
  EXPECT_EQ(poll(&said, 1, 60'000), 1);
  return std::make_unique<ReplicaProcess>(*std::move(launched), Start(replica_id), "/dev/null");
}

// A process that shares this one's memory, and waits.
std::unique_ptr<ReplicaProcess> Forked(std::int64_t replica_id) {
  std::array<int, 2> sockets{};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sockets.data()), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    pause();
    _exit(0);
  }
  EXPECT_EQ(setpgid(pid, pid), 0);
  close(sockets[1]);
  LaunchedProcess process{
      .pid = pid,
      .pidfd = FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))),
      .control = FileDescriptor(sockets[0])};
  return std::make_unique<ReplicaProcess>(std::move(process), Start(replica_id), "/dev/null");
}

bool Any(const ReplicaProcess&) { return true; }

// Hears until no more than so many are left.
bool AwaitSize(SparePool& pool, std::size_t size) {
  while (pool.size() > size) {
    std::vector<pollfd> fds;
    pool.Watch(fds);
    if (poll(fds.data(), fds.size(), 60'000) <= 0) return false;
    pool.Hear(fds);
  }
  return pool.size() == size;
}

TEST(SparePool, TakesTheOneParkedLast) {
  SparePool pool(std::int64_t{1} << 30);
  const auto now = SparePool::Clock::now();
  pool.Add(Shell(1), now);
  pool.Add(Shell(2), now);
  v1::StartReplica start = Start(9);
  start.set_joins(2);  // as neither of them did
  const auto taken = pool.Take(start, Any);
  ASSERT_NE(taken, nullptr);
  EXPECT_EQ(taken->identity().replica_id(), 2);
  EXPECT_EQ(pool.Take(Start(9), [](const ReplicaProcess&) { return false; }), nullptr);
  EXPECT_EQ(pool.size(), 1U);
}

TEST(SparePool, CountsWhatSparesHoldOnTheirGpus) {
  SparePool pool(std::int64_t{1} << 30);
  const auto now = SparePool::Clock::now();
  pool.Add(Shell(1), now, std::int64_t{900} << 20);
  EXPECT_EQ(pool.size(), 1U);
  pool.Add(Shell(2), now, std::int64_t{200} << 20);
  ASSERT_TRUE(AwaitSize(pool, 1));
  EXPECT_EQ(pool.Take(Start(9), Any)->identity().replica_id(), 2);
}

TEST(SparePool, EndsTheLongestParkedWhenMemoryIsShort) {
  auto first = Shell(1);
  auto second = Shell(2);
  const std::int64_t one = OwnMemoryBytes(first->identity().pid());
  ASSERT_GT(one, 0);
  SparePool pool(one + OwnMemoryBytes(second->identity().pid()) / 2);
  const auto now = SparePool::Clock::now();
  pool.Add(std::move(first), now);
  EXPECT_EQ(pool.size(), 1U);
  pool.Add(std::move(second), now);
  ASSERT_TRUE(AwaitSize(pool, 1));
  EXPECT_EQ(pool.Take(Start(9), Any)->identity().replica_id(), 2);
}

TEST(SparePool, CountsNotWhatSparesShare) {
  constexpr std::int64_t kShared = std::int64_t{64} << 20;
  const std::vector<char> shared(kShared, 'x');
  SparePool pool(kShared / 2);
  const auto now = SparePool::Clock::now();
  pool.Add(Forked(1), now);
  pool.Add(Forked(2), now);
  for (const std::int64_t id : {2, 1}) {
    const auto taken = pool.Take(Start(9), Any);
    ASSERT_NE(taken, nullptr);
    EXPECT_EQ(taken->identity().replica_id(), id);
  }
}

TEST(SparePool, EndsThoseThatNobodyWanted) {
  SparePool pool(std::int64_t{1} << 30);
  const auto now = SparePool::Clock::now();
  pool.Add(Shell(1), now);
  EXPECT_EQ(pool.NextTime(now, {}), now + kMaxSpareAge);
  pool.KeepTime(now + kMaxSpareAge / 2, {});
  pool.Add(Shell(2), now + kMaxSpareAge / 2);
  pool.KeepTime(now + kMaxSpareAge, {});
  ASSERT_TRUE(AwaitSize(pool, 1));
  EXPECT_EQ(pool.Take(Start(9), Any)->identity().replica_id(), 2);
}

// A replica that was forked shares nearly all of its memory with its zygote.
TEST(OwnMemoryBytes, LeavesOutWhatIsSharedByFork) {
  constexpr std::int64_t kShared = std::int64_t{64} << 20;
  constexpr std::int64_t kOwn = std::int64_t{8} << 20;
  const std::vector<char> shared(kShared, 'x');
  ASSERT_GT(OwnMemoryBytes(getpid()), kShared);
  std::array<int, 2> written{};
  ASSERT_EQ(pipe(written.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    const std::vector<char> own(kOwn, 'x');
    [[maybe_unused]] const ssize_t wrote = write(written[1], &own.back(), 1);
    pause();
    _exit(shared.back());
  }
  char byte = 0;
  ASSERT_EQ(read(written[0], &byte, 1), 1);
  EXPECT_GE(OwnMemoryBytes(child), kOwn);
  EXPECT_LT(OwnMemoryBytes(child), kShared / 2);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(written[0]);
  close(written[1]);
}

TEST(OwnMemoryBytes, IsNothingForAProcessThatIsGone) {
  EXPECT_GT(OwnMemoryBytes(getpid()), 0);
  EXPECT_EQ(OwnMemoryBytes(0), 0);
}

}  // namespace
}  // namespace espalier
