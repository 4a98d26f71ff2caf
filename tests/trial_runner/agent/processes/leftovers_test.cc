#include "trial_runner/agent/processes/leftovers.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string>

#include "base/file_descriptor.h"
#include "trial_runner/agent/processes/left_processes.h"

namespace espalier {
namespace {

constexpr char kMarkOfTest[] = "leftovers-test";
// A replica whose rank has so much memory that the system takes a while to end it, and a loader in
// a session of its own. The replica prints their numbers.
constexpr char kReplicaWithLoader[] = R"sh(
rank='import signal, subprocess, sys
held = bytearray(b"x") * (400 << 20)
waits = [sys.executable, "-c", "import signal; signal.pause()"]
loader = subprocess.Popen(waits, start_new_session=True)
print(loader.pid, flush=True)
signal.pause()'
setsid python3 -c "$rank" &
echo $!
wait
)sh";

bool StillLives(pid_t pid) {
  const char state = StatusOf(pid).state;
  return state != 0 && state != 'Z';
}

class LeftoversTest : public testing::Test {
 protected:
  void SetUp() override {
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe(pipe.data()), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pipe[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, pipe[0]);
    std::array<std::string, 3> words{"sh", "-c", kReplicaWithLoader};
    std::array<std::string, 3> variables{"PATH=/usr/bin:/bin", "ESPALIER_REPLICA_ID=7",
                                         std::string(kRunMarkVariable) + "=" + kMarkOfTest};
    char* const argv[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
    char* const envp[] = {variables[0].data(), variables[1].data(), variables[2].data(), nullptr};
    ASSERT_EQ(posix_spawn(&replica_, "/bin/sh", &actions, nullptr, argv, envp), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(pipe[1]);
    std::FILE* const told = fdopen(pipe[0], "r");
    ASSERT_EQ(std::fscanf(told, "%d%d", &rank_, &loader_), 2);
    std::fclose(told);
  }
  void TearDown() override { kill(loader_, SIGKILL); }

  Leftovers leftovers_{kMarkOfTest};
  pid_t replica_ = 0;
  pid_t rank_ = 0;
  pid_t loader_ = 0;
};

TEST_F(LeftoversTest, WaitsForOneThatIsEndingAndEndsWhatItHadStarted) {
  kill(replica_, SIGKILL);
  ASSERT_EQ(waitpid(replica_, nullptr, 0), replica_);
  kill(rank_, SIGKILL);
  // Until nothing says any more whose it is.
  while (CarriesOneOf(VariablesOf(rank_), {kMarkOfTest})) {
  }
  while (!leftovers_.Gone({.leader = replica_, .ids = {7}}, {})) poll(nullptr, 0, 5);
  EXPECT_FALSE(StillLives(rank_));
  EXPECT_FALSE(StillLives(loader_));
}

}  // namespace
}  // namespace espalier
