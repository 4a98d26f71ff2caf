#include <gmock/gmock.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "trial_runner/agent/zygotes/native_command.h"
#include "trial_runner/agent/zygotes/zygotes.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t kForkedReplica = 7;

// Zygotes of a program in C++ that has nothing to do with LibTorch.
class NativeZygotesTest : public ::testing::Test {
 protected:
  explicit NativeZygotesTest(std::chrono::milliseconds fork_within = std::chrono::seconds(60))
      : zygotes_(Options(fork_within)) {
    std::string name = (std::filesystem::temp_directory_path() / "zygotes-XXXXXX").string();
    folder_ = std::filesystem::canonical(mkdtemp(name.data()));
    std::filesystem::copy_file(FORKED_PROGRAM, folder_ / "program");
    std::filesystem::create_directory(folder_ / "logs");
  }
  ~NativeZygotesTest() override {
    zygotes_.EndAll();
    std::filesystem::remove_all(folder_);
  }

  static ZygoteOptions Options(std::chrono::milliseconds fork_within) {
    ZygoteOptions options;
    options.fork_within = fork_within;
    return options;
  }

  LaunchOrder Order(std::vector<std::string> arguments, const std::string& log = "forked") const {
    LaunchOrder order;
    order.command = {"./program"};
    order.command.insert(order.command.end(), arguments.begin(), arguments.end());
    order.directory = folder_.string();
    order.environment = {{"PATH", "/usr/bin:/bin"},
                         {"ESPALIER_TRIAL_ID", "5"},
                         {"ESPALIER_AGENT_RUN", "mark"},
                         {"EMPTY", ""},
                         {"LINES", "a\nb"}};
    order.log_path = (folder_ / "logs" / log).string();
    return order;
  }
  std::string Read(const std::string& log) const {
    std::stringstream text;
    text << std::ifstream(folder_ / "logs" / log).rdbuf();
    return text.str();
  }

  void Hear(int wait_ms) {
    std::vector<pollfd> fds;
    zygotes_.Watch(fds);
    if (poll(fds.data(), fds.size(), wait_ms) > 0) zygotes_.Hear(fds);
  }

  static int AwaitEnd(const LaunchedProcess& process) {
    int status = 0;
    EXPECT_EQ(waitpid(process.pid, &status, 0), process.pid);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  }

  // A first replica of the order's kind is refused, as ever, and says this while a process of its
  // program runs.
  void Speak(const LaunchOrder& order, const std::optional<std::string>& obstacle = "") {
    ASSERT_FALSE(zygotes_.Fork(kForkedReplica, order, {}).has_value());
    const auto process = Launch(Order({"", "wait"}, "speaker"));
    ASSERT_TRUE(process.ok()) << process.status();
    zygotes_.Spoke(kForkedReplica, Zygotes::Clock::now(), process->pid, obstacle);
    kill(process->pid, SIGKILL);
    AwaitEnd(*process);
  }
  // Then another one is forked.
  std::optional<LaunchedProcess> Fork(const LaunchOrder& order) {
    if (zygotes_.size() == 0) Speak(order);
    for (int i = 0; i < 100 && zygotes_.size() > 0; ++i) {
      if (auto forked = zygotes_.Fork(kForkedReplica, order, {})) return forked;
      Hear(60'000);
    }
    return std::nullopt;
  }
  pid_t ZygotePid() const {
    std::ifstream children("/proc/self/task/" + std::to_string(getpid()) + "/children");
    pid_t pid = 0;
    children >> pid;
    return pid;
  }

  std::filesystem::path folder_;
  Zygotes zygotes_;
};

struct NativeLikeness {
  const char* name;
  std::vector<std::string> arguments;
  int end;
};

const NativeLikeness kNativeLikenesses[] = {
    {"Facts", {"", "", "y z", "\xff"}, 0}, {"Variables", {"variables"}, 0},
    {"AnExitCode", {"", "code"}, 3},       {"Abort", {"", "abort"}, -SIGABRT},
    {"Signal", {"", "kill"}, -SIGKILL},    {"AtExit", {"", "at_exit"}, 0},
};

class NativeForkedTest : public NativeZygotesTest,
                         public ::testing::WithParamInterface<NativeLikeness> {};

TEST_P(NativeForkedTest, RunsAsOneThatIsStartedByItself) {
  const NativeLikeness& likeness = GetParam();
  const auto first = Fork(Order(likeness.arguments));
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(AwaitEnd(*first), likeness.end);
  const auto second = Fork(Order(likeness.arguments, "second"));
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(AwaitEnd(*second), likeness.end);
  const auto own = Launch(Order(likeness.arguments, "own"));
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_EQ(AwaitEnd(*own), likeness.end);
  EXPECT_EQ(Read("forked"), Read("own"));
  EXPECT_EQ(Read("second"), Read("own"));
  EXPECT_THAT(Read("own"), HasSubstr("printed before\nobstacle: .\n"));
}

INSTANTIATE_TEST_SUITE_P(Zygotes, NativeForkedTest, ::testing::ValuesIn(kNativeLikenesses),
                         [](const auto& instance) { return instance.param.name; });

TEST_F(NativeZygotesTest, TalksOverTheControlSocket) {
  const auto forked = Fork(Order({"", "answer"})).value();
  ASSERT_EQ(send(forked.control.get(), "h", 1, 0), 1);
  pollfd said{forked.control.get(), POLLIN, 0};
  ASSERT_EQ(poll(&said, 1, 60'000), 1);
  char answer = 0;
  EXPECT_EQ(recv(forked.control.get(), &answer, 1, 0), 1);
  EXPECT_EQ(answer, 'H');
  pollfd ended{forked.pidfd.get(), POLLIN, 0};
  EXPECT_EQ(poll(&ended, 1, 60'000), 1);
  EXPECT_EQ(AwaitEnd(forked), 0);
}

TEST_F(NativeZygotesTest, ReplicasLiveOnWithoutTheirZygote) {
  const auto forked = Fork(Order({"", "answer"})).value();
  zygotes_.EndAll();
  ASSERT_EQ(send(forked.control.get(), "h", 1, 0), 1);
  EXPECT_EQ(AwaitEnd(forked), 0);
}

TEST_F(NativeZygotesTest, EachHasWhatItsOrderSays) {
  LaunchOrder order = Order({"", "code"});
  ASSERT_EQ(AwaitEnd(Fork(order).value()), 3);
  order.log_path = (folder_ / "logs/second").string();
  order.environment["ESPALIER_TRIAL_ID"] = "6";
  order.environment["CUDA_VISIBLE_DEVICES"] = "GPU-2";
  ASSERT_EQ(AwaitEnd(zygotes_.Fork(kForkedReplica, order, {}).value()), 3);
  EXPECT_THAT(Read("second"), HasSubstr("ESPALIER_TRIAL_ID=6\n"));
  EXPECT_THAT(Read("second"), HasSubstr("CUDA_VISIBLE_DEVICES=GPU-2\n"));
  EXPECT_THAT(Read("second"), Not(HasSubstr("ESPALIER_ZYGOTE")));
  const auto forks = [&](const LaunchOrder& other) {
    const auto forked = zygotes_.Fork(kForkedReplica, other, {});
    if (forked) AwaitEnd(*forked);
    return forked.has_value();
  };
  EXPECT_TRUE(forks(order));
  LaunchOrder other = order;
  other.environment["MINE"] = "1";
  EXPECT_FALSE(forks(other));
  other = order;
  other.command.emplace_back("more");
  EXPECT_FALSE(forks(other));
  other = order;
  other.cpus = {0};
  EXPECT_FALSE(forks(other));
  other = order;
  other.directory = (folder_ / "logs/..").string();
  EXPECT_FALSE(forks(other));
}

// A trial's own folder is no place for what all of them share.
TEST_F(NativeZygotesTest, InFoldersOfTheirOwnTrialsShareAZygoteThatIsInNone) {
  LaunchOrder order = Order({"", "code"});
  order.command[0] = (folder_ / "program").string();
  order.directory = (folder_ / "logs").string();
  ASSERT_EQ(AwaitEnd(Fork(order).value()), 3);
  EXPECT_EQ(ReadNativeCommand(order)->directory, "/proc");
  std::filesystem::create_directory(folder_ / "second");
  order.directory = (folder_ / "second").string();
  order.log_path = order.directory + "/log";
  const auto forked = zygotes_.Fork(kForkedReplica, order, {});
  ASSERT_TRUE(forked.has_value());
  ASSERT_EQ(AwaitEnd(*forked), 3);
  EXPECT_THAT(Read("../second/log"), HasSubstr("folder " + order.directory + "\n"));
}

TEST_F(NativeZygotesTest, WhatSaysThatItCannotBeForkedGetsNone) {
  for (const char* before : {"thread", "file", "output", "child", "memory"}) {
    LaunchOrder order = Order({before, "code"}, before);
    const auto own = Launch(order);
    ASSERT_TRUE(own.ok());
    ASSERT_EQ(AwaitEnd(*own), 3);
    if (before != std::string("output")) {
      EXPECT_THAT(Read(before), HasSubstr("obstacle: it")) << "a replica's greeting says so";
    }
    Speak(order, "it has 2 threads");
    EXPECT_EQ(zygotes_.size(), 0U);
    Speak(order);
    EXPECT_EQ(zygotes_.size(), 0U) << "it is not asked again";
  }
}

// Each has said that nothing keeps it from it, and then it is otherwise.
TEST_F(NativeZygotesTest, ZygotesThatCannotBeForkedAreNotTriedAgain) {
  for (const char* before : {"thread", "file", "output", "child", "much", "end"}) {
    const LaunchOrder order = Order({before, "code"});
    EXPECT_FALSE(Fork(order).has_value()) << before;
    EXPECT_EQ(zygotes_.size(), 0U) << before;
    Speak(order);
    EXPECT_EQ(zygotes_.size(), 0U) << before;
  }
  EXPECT_EQ(Read("forked"), "") << "nothing has run";
}

TEST_F(NativeZygotesTest, AProgramThatDoesNotComeToItsTrialIsGivenUp) {
  const LaunchOrder order = Order({"hang"});
  Speak(order);
  EXPECT_EQ(zygotes_.size(), 1U);
  EXPECT_FALSE(zygotes_.Fork(kForkedReplica, order, {}).has_value()) << "nobody waits for it";
  zygotes_.KeepTime(Zygotes::Clock::now() + kMaxZygoteProgram);
  EXPECT_EQ(zygotes_.size(), 0U);
  Speak(order);
  EXPECT_EQ(zygotes_.size(), 0U);
}

TEST_F(NativeZygotesTest, OnlyTheProgramItselfGetsOne) {
  const LaunchOrder order = Order({"", "code"});
  Speak(order, std::nullopt);
  EXPECT_EQ(zygotes_.size(), 0U) << "it has not said that it can be forked";
  ASSERT_FALSE(zygotes_.Fork(kForkedReplica, order, {}).has_value());
  zygotes_.Spoke(kForkedReplica, Zygotes::Clock::now(), getpid(), "");
  EXPECT_EQ(zygotes_.size(), 0U) << "the process runs something else";
  std::ofstream(folder_ / "script") << "#!/bin/sh\nexec ./program '' code\n";
  std::filesystem::permissions(folder_ / "script", std::filesystem::perms::owner_all);
  LaunchOrder script = order;
  script.command = {"./script"};
  EXPECT_FALSE(ReadNativeCommand(script).has_value());
  LaunchOrder missing = order;
  missing.command = {"./missing"};
  EXPECT_FALSE(ReadNativeCommand(missing).has_value());
  EXPECT_TRUE(ReadNativeCommand(order).has_value());
}

TEST_F(NativeZygotesTest, OneThatDiesIsReplaced) {
  const LaunchOrder order = Order({"", "code"});
  ASSERT_EQ(AwaitEnd(Fork(order).value()), 3);
  kill(ZygotePid(), SIGKILL);
  Hear(60'000);
  EXPECT_EQ(zygotes_.size(), 0U);
  ASSERT_EQ(AwaitEnd(Fork(order).value()), 3);
}

// Where a fork is not waited for for long: none succeeds here.
class ImpatientZygotesTest : public NativeZygotesTest {
 protected:
  ImpatientZygotesTest() : NativeZygotesTest(std::chrono::milliseconds(300)) {}
};

TEST_F(ImpatientZygotesTest, OneThatHangsIsGivenUp) {
  const LaunchOrder order = Order({"", "code"});
  Speak(order);
  Hear(60'000);  // ready
  ASSERT_EQ(zygotes_.size(), 1U);
  kill(ZygotePid(), SIGSTOP);
  EXPECT_FALSE(zygotes_.Fork(kForkedReplica, order, {}).has_value());
  EXPECT_EQ(zygotes_.size(), 0U);
  EXPECT_EQ(ZygotePid(), 0) << "it is gone, and so is what it had begun";
  EXPECT_EQ(Read("forked"), "") << "nothing has run";
}

TEST_F(NativeZygotesTest, WhatIsBuiltAnewIsRun) {
  const LaunchOrder order = Order({"", "code"});
  ASSERT_EQ(AwaitEnd(Fork(order).value()), 3);
  EXPECT_FALSE(RunsReplacedFiles(ZygotePid()));
  std::filesystem::copy_file(folder_ / "program", folder_ / "built");
  std::filesystem::rename(folder_ / "built", folder_ / "program");
  EXPECT_TRUE(RunsReplacedFiles(ZygotePid()));
  EXPECT_FALSE(zygotes_.Fork(kForkedReplica, order, {}).has_value());
}

}  // namespace
}  // namespace espalier
