#include "trial_runner/agent/processes/left_processes.h"

#include <gmock/gmock.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/trial_runner/agent/agent_fixture.h"

namespace espalier {
namespace {

// A program of the test's own, with a mark or with none.
class Bystander {
 public:
  explicit Bystander(const std::string& mark) {
    std::string variable = std::string(kRunMarkVariable) + "=" + mark;
    std::string program = "/bin/sleep";
    std::string seconds = "1000";
    char* const arguments[] = {program.data(), seconds.data(), nullptr};
    char* const environment[] = {mark.empty() ? nullptr : variable.data(), nullptr};
    EXPECT_EQ(posix_spawn(&pid_, "/bin/sleep", nullptr, nullptr, arguments, environment), 0);
  }
  ~Bystander() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Bystander(const Bystander&) = delete;
  Bystander& operator=(const Bystander&) = delete;

  bool lives() const { return waitpid(pid_, nullptr, WNOHANG) == 0; }

 private:
  pid_t pid_ = 0;
};

class LeftProcesses : public AgentTest {
 protected:
  // A process that holds an agent of the node "held"; `marks` is what it is started with.
  void Hold(const std::string& marks = "", bool watched = false) {
    std::string address = service_.address();
    std::string directory = Path("held");
    std::string program = AGENT_HOLDER;
    std::string variable = std::string(kRunMarkVariable) + "=" + marks;
    std::string path = "PATH=/usr/bin:/bin";
    std::string lease = "60";
    std::string word = "watched";
    char* const arguments[] = {program.data(),
                               address.data(),
                               directory.data(),
                               lease.data(),
                               watched ? word.data() : nullptr,
                               nullptr};
    char* const environment[] = {path.data(), variable.data(), nullptr};
    ASSERT_EQ(posix_spawn(&holder_, AGENT_HOLDER, nullptr, nullptr, arguments, environment), 0);
  }
  void KillHolder() {
    kill(holder_, SIGKILL);
    waitpid(holder_, nullptr, 0);
  }
  void StartNextAgent() {
    AgentOptions options = Options();
    options.node_name = "held";
    options.directory = Path("held");
    auto agent = Agent::Start(options);
    ASSERT_TRUE(agent.ok()) << agent.status();
    agent_ = *std::move(agent);
  }
  // Waits for a file with a number in it.
  int NumberIn(const std::string& name) const {
    for (int number = 0;; poll(nullptr, 0, 5)) {
      std::ifstream file(Path(name));
      if (file >> number && number > 0 && file.get() == '\n') return number;
    }
  }
  static bool Lives(int pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string line;
    std::getline(file, line);
    return !line.empty() && line.substr(line.rfind(')') + 1, 2) != " Z";
  }

  pid_t holder_ = 0;
};

// In another session, deaf to SIGHUP, forked twice, and with an environment of its own.
constexpr const char* kFamily = R"(
setsid sh -c 'echo $$ > session; exec sleep 1000' &
nohup sleep 1000 > /dev/null 2>&1 & echo $! > deaf
(setsid sh -c 'sh -c "echo \$\$ > orphan; exec sleep 1000" &' &)
setsid sh -c 'env -i sleep 1000 & echo $! > bare; wait' &
exec sleep 1000
)";

TEST_F(LeftProcesses, OfAKilledAgentNothingIsThereWhenTheNextOneStarts) {
  const Bystander unmarked("");
  const Bystander of_another_agent("0123456789abcdef0123456789abcdef");
  Hold();
  service_.Start(Shell(1, kFamily));
  const std::vector<int> family = {AwaitPid(1), NumberIn("session"), NumberIn("deaf"),
                                   NumberIn("orphan"), NumberIn("bare")};
  KillHolder();
  EXPECT_TRUE(Lives(family[1]));  // or this test would show nothing
  StartNextAgent();
  for (const int pid : family) EXPECT_FALSE(Lives(pid)) << pid;
  EXPECT_TRUE(unmarked.lives());
  EXPECT_TRUE(of_another_agent.lives());
}

TEST_F(LeftProcesses, OfAKilledAgentThatIsWatchedNothingIsLeftAndNoOtherAgentIsNeeded) {
  const Bystander unmarked("");
  const Bystander of_another_agent("0123456789abcdef0123456789abcdef");
  Hold("", true);
  service_.Start(Shell(1, kFamily));
  const std::vector<int> family = {AwaitPid(1), NumberIn("session"), NumberIn("deaf"),
                                   NumberIn("orphan"), NumberIn("bare")};
  KillHolder();
  for (const int pid : family) {
    while (Lives(pid)) poll(nullptr, 0, 5);
  }
  EXPECT_TRUE(unmarked.lives());
  EXPECT_TRUE(of_another_agent.lives());
}

TEST_F(LeftProcesses, OfAnAgentThatStopsNothingIsThereEither) {
  StartNextAgent();
  service_.Start(Shell(1, kFamily));
  const std::vector<int> family = {NumberIn("session"), NumberIn("orphan"), NumberIn("bare")};
  agent_->Stop(0);
  for (const int pid : family) EXPECT_FALSE(Lives(pid)) << pid;
}

// A trial may start the next agent of its own node.
TEST_F(LeftProcesses, AnAgentDoesNotEndItself) {
  std::filesystem::create_directories(Path("held/.agent/held"));
  WriteFile("held/.agent/held/run", "pid 1 1\nmark 00ff\n");
  const Bystander left("00ff");
  Hold("00ff");
  service_.Start(Shell(1, "exec sleep 1000"));
  EXPECT_GT(AwaitPid(1), 0);
  EXPECT_FALSE(left.lives());
  KillHolder();
}

TEST(RunMarks, ATrialWithinATrialCarriesBothMarks) {
  EXPECT_EQ(RunMarks({}, "a"), "a");
  EXPECT_EQ(RunMarks({{kRunMarkVariable, "a"}}, "b"), "a,b");
  const Bystander inner("00aa,00bb");
  EXPECT_EQ(*EndMarkedProcesses({"00a", "0aa,00b"}, std::chrono::seconds(60)), 0U);
  EXPECT_TRUE(inner.lives());
  EXPECT_EQ(*EndMarkedProcesses({"00aa"}, std::chrono::seconds(60)), 1U);
  EXPECT_FALSE(inner.lives());
}

TEST(RunMarks, NoTwoAreAlike) {
  EXPECT_EQ(NewRunMark().size(), 32U);
  EXPECT_NE(NewRunMark(), NewRunMark());
}

}  // namespace
}  // namespace espalier
