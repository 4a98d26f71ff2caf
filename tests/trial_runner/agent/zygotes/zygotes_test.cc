#include "trial_runner/agent/zygotes/zygotes.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace espalier {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t kReplica = 7;

// Zygotes of the real interpreter that import little, so that nothing here waits for PyTorch.
class ZygotesTest : public ::testing::Test {
 protected:
  ZygotesTest() {
    std::string name = (std::filesystem::temp_directory_path() / "zygotes-XXXXXX").string();
    folder_ = std::filesystem::canonical(mkdtemp(name.data()));
  }
  ~ZygotesTest() override { std::filesystem::remove_all(folder_); }

  ZygoteOptions Options(std::vector<std::string> modules = {"json", "multiprocessing"}) const {
    ZygoteOptions options;
    options.log_path = (folder_ / "zygotes.log").string();
    options.modules = std::move(modules);
    options.fork_within = std::chrono::seconds(60);
    return options;
  }

  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }
  std::string Read(const std::string& name) const {
    std::stringstream text;
    text << std::ifstream(folder_ / name).rdbuf();
    return text.str();
  }

  LaunchOrder Order(std::vector<std::string> command) const {
    LaunchOrder order;
    order.command = std::move(command);
    order.directory = folder_.string();
    const char* const path = getenv("PATH");
    order.environment = {{"PATH", path == nullptr ? "/usr/bin:/bin" : path},
                         {"PYTHONPATH", ESPALIER_PYTHON_PACKAGE},
                         {"PYTHONDONTWRITEBYTECODE", "1"},
                         {"OMP_NUM_THREADS", "1"},
                         {"ESPALIER_TRIAL_ID", "5"},
                         {"EMPTY", ""},
                         {"LINES", "a\nb"}};
    order.log_path = (folder_ / "forked.log").string();
    return order;
  }

  static void Hear(Zygotes& zygotes, int wait_ms) {
    std::vector<pollfd> fds;
    zygotes.Watch(fds);
    if (poll(fds.data(), fds.size(), wait_ms) > 0) zygotes.Hear(fds);
  }

  // Has a program of the order's kind speak, and forks another once that can be done.
  std::optional<LaunchedProcess> Fork(Zygotes& zygotes, const LaunchOrder& order) const {
    for (int i = 0; i < 100; ++i) {
      if (auto forked = zygotes.Fork(kReplica, order, {})) return forked;
      zygotes.Spoke(kReplica, Zygotes::Clock::now());
      if (zygotes.size() == 0) return std::nullopt;
      Hear(zygotes, 60'000);
    }
    return std::nullopt;
  }

  // Its exit code, or its signal as a negative number.
  static int AwaitEnd(const LaunchedProcess& process) {
    int status = 0;
    EXPECT_EQ(waitpid(process.pid, &status, 0), process.pid);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  }

  std::filesystem::path folder_;
};

// What the process prints and how it ends, by an interpreter of its own and forked.
struct Likeness {
  const char* name;
  std::vector<std::string> arguments;
  const char* script;
  const char* expected;  // in its log
};

constexpr const char* kFacts = R"py(
import ctypes, json, os, resource, signal, sys, threading
def read(name):
    with open('/proc/self/' + name, 'rb') as file:
        return file.read().decode('latin-1')
death = ctypes.c_int()
ctypes.CDLL(None).prctl(2, ctypes.byref(death), 0, 0, 0)
os.umask(umask := os.umask(0))
facts = {
    'globals': sorted(k for k in globals() if k.startswith('__')), 'file': __file__, 'name': __name__,
    'spec': __spec__ and __spec__.name, 'loader': type(__loader__).__name__, 'package': str(__package__),
    'argv': sys.argv, 'orig_argv': getattr(sys, 'orig_argv', None), 'path': sys.path, 'flags': str(sys.flags),
    'executable': sys.executable, 'folder': os.getcwd(), 'umask': umask,
    'environment': sorted(os.environ.items()), 'cmdline': read('cmdline'), 'environ': sorted(read('environ').split('\0')),
    'signals': [str(signal.getsignal(n)) for n in range(1, 32)], 'mask': str(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    'descriptors': sorted(os.listdir('/proc/self/fd')), 'control': os.readlink('/proc/self/fd/3').split(':')[0],
    'input': sys.stdin.read(), 'inheritable': os.get_inheritable(3),
    'death': death.value, 'leads': os.getpgid(0) == os.getpid(), 'session': os.getsid(0), 'parent': os.getppid(),
    'limits': [resource.getrlimit(n) for n in range(10)], 'oom': read('oom_score_adj'), 'nice': os.nice(0),
    'cores': sorted(os.sched_getaffinity(0)), 'threads': os.listdir('/proc/self/task') == [str(os.getpid())],
    'cgroup': read('cgroup'), 'comm': read('comm'), 'main': threading.main_thread() is threading.current_thread(),
    'lines': [sys.stdout.line_buffering, sys.stderr.line_buffering, sys.stdout.write_through, sys.stdout.encoding],
    'main_module': sys.modules['__main__'].__dict__ is globals(),
}
for name, fact in facts.items():
    print(name, json.dumps(fact))
)py";

constexpr const char* kProcesses = R"py(
import multiprocessing, os
class Value:
    pass
def work(value):
    return type(value).__module__, os.path.basename(os.getcwd()), value.n
if __name__ == '__main__':
    value = Value()
    value.n = 3
    for method in ('fork', 'spawn', 'forkserver'):
        with multiprocessing.get_context(method).Pool(1) as pool:
            print(method, pool.apply(work, (value,)))
)py";

constexpr const char* kFailing = R"py(
def inner():
    raise ValueError('on purpose')
try:
    inner()
except ValueError as error:
    raise RuntimeError('again') from error
)py";

constexpr const char* kHooked = R"py(
import atexit, sys, threading
shown = sys.excepthook
over = threading.Event()
def hook(kind, error, trace):
    print('hooked', trace.tb_frame.f_code.co_name, flush=True)
    shown(kind, error, trace)
    over.set()
sys.excepthook = hook
atexit.register(lambda: print('at exit', sys.modules['__main__'].__name__, flush=True))
threading.Thread(target=lambda: over.wait() and print('thread', flush=True)).start()
import nothing_like_this
)py";

const Likeness kLikenesses[] = {
    {"Facts", {"program.py", "--x", "y z", "\xff"}, kFacts, "main_module true"},
    {"FactsUnbuffered", {"-u", "program.py"}, kFacts, "main_module true"},
    {"FactsOfAModule", {"-m", "program", "-m"}, kFacts, "main_module true"},
    {"FactsOfAPackage", {"-m", "package.program"}, kFacts, "main_module true"},
    {"Processes", {"program.py"}, kProcesses, "spawn ('__"},
    {"ProcessesOfAModule", {"-m", "program"}, kProcesses, "forkserver ('__"},
    {"AnException", {"program.py"}, kFailing, "RuntimeError: again"},
    {"AnExceptionOfAModule", {"-m", "program"}, kFailing, "RuntimeError: again"},
    {"Hooks", {"program.py"}, kHooked, "hooked <module>"},
    {"ASyntaxError", {"program.py"}, "x = (1,\ny = 2\n", "SyntaxError"},
    {"AnEncoding", {"program.py"}, "# coding: latin-1\nprint(ascii('\xe9'))\n", "'\\xe9'"},
    {"AnExitCode", {"program.py"}, "import sys\nprint('so', flush=True)\nsys.exit(3)\n", "so"},
    {"AnExitText", {"program.py"}, "import sys\nsys.exit('a reason')\n", "a reason"},
    {"NoModule", {"-m", "no_such.module"}, "", "No module named"},
    {"Interrupt", {"program.py"}, "raise KeyboardInterrupt\n", "KeyboardInterrupt"},
    {"Signal", {"program.py"}, "import os\nprint('x', flush=True)\nos.kill(os.getpid(), 9)\n", "x"},
    {"Abort", {"program.py"}, "import os\nprint('x', flush=True)\nos.abort()\n", "x"},
};

class ForkedTest : public ZygotesTest, public ::testing::WithParamInterface<Likeness> {};

TEST_P(ForkedTest, RunsAsByAnInterpreterOfItsOwn) {
  const Likeness& likeness = GetParam();
  std::filesystem::create_directory(folder_ / "package");
  Write("program.py", likeness.script);
  Write("package/program.py", likeness.script);
  LaunchOrder order = Order({"python3"});
  order.command.insert(order.command.end(), likeness.arguments.begin(), likeness.arguments.end());
  Zygotes zygotes(Options());
  const auto forked = Fork(zygotes, order);
  ASSERT_TRUE(forked.has_value()) << Read("zygotes.log");
  const int forked_end = AwaitEnd(*forked);
  order.log_path = (folder_ / "own.log").string();
  const auto own = Launch(order);
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_EQ(AwaitEnd(*own), forked_end);
  EXPECT_EQ(Read("forked.log"), Read("own.log"));
  EXPECT_THAT(Read("forked.log"), HasSubstr(likeness.expected));
  EXPECT_THAT(Read("forked.log"), Not(HasSubstr("_zygote")));
}

INSTANTIATE_TEST_SUITE_P(Zygotes, ForkedTest, ::testing::ValuesIn(kLikenesses),
                         [](const auto& instance) { return instance.param.name; });

TEST_F(ZygotesTest, ProcessesHaveRandomNumbersOfTheirOwn) {
  Write("program.py",
        "import multiprocessing.process as p, random, tempfile, uuid\n"
        "print(random.random(), bytes(p.current_process().authkey), uuid.uuid4(),\n"
        "      next(tempfile._get_candidate_names()))\n");
  LaunchOrder order = Order({"python3", "program.py"});
  Zygotes zygotes(Options({"random", "multiprocessing", "tempfile", "uuid"}));
  ASSERT_EQ(AwaitEnd(Fork(zygotes, order).value()), 0);
  order.log_path = (folder_ / "second.log").string();
  ASSERT_EQ(AwaitEnd(Fork(zygotes, order).value()), 0);
  std::istringstream first(Read("forked.log"));
  std::istringstream second(Read("second.log"));
  std::string a;
  std::string b;
  int words = 0;
  for (; first >> a && second >> b; ++words) EXPECT_NE(a, b);
  EXPECT_GE(words, 4);
}

TEST_F(ZygotesTest, VariablesThatImportsSetAreSet) {
  Write("imported.py",
        "import os\nos.environ['SET'] = '1'\nos.environ['LINES'] += 'c'\n"
        "del os.environ['EMPTY']\n");
  Write("program.py",
        "import imported, os\nfor name, value in sorted(os.environ.items()): print(name, value)\n");
  LaunchOrder order = Order({"python3", "program.py"});
  order.environment["PYTHONPATH"] += ":" + folder_.string();
  order.environment["OPENBLAS_NUM_THREADS"] = "7";
  Zygotes zygotes(Options({"imported"}));
  ASSERT_EQ(AwaitEnd(Fork(zygotes, order).value()), 0);
  order.log_path = (folder_ / "own.log").string();
  ASSERT_EQ(AwaitEnd(Launch(order).value()), 0);
  EXPECT_EQ(Read("forked.log"), Read("own.log"));
  EXPECT_THAT(Read("forked.log"), HasSubstr("\nSET 1\n"));
}

TEST_F(ZygotesTest, RelativePathsAreThoseOfTheProgramsFolder) {
  std::filesystem::create_directories(folder_ / "work" / "more");
  Write("work/imported.py", "import another\n");
  Write("work/more/another.py", "");
  Write(
      "work/program.py",
      "import imported, os, sys\n"
      "print(imported.__file__, imported.another.__file__, sys.path, os.environ['PYTHONPATH'])\n");
  LaunchOrder order = Order({"python3", "program.py"});
  order.directory = (folder_ / "work").string();
  order.environment["PYTHONPATH"] += ":.:more";
  Zygotes zygotes(Options({"imported"}));
  ASSERT_EQ(AwaitEnd(Fork(zygotes, order).value()), 0);
  order.log_path = (folder_ / "own.log").string();
  ASSERT_EQ(AwaitEnd(Launch(order).value()), 0);
  EXPECT_EQ(Read("forked.log"), Read("own.log"));
  EXPECT_THAT(Read("forked.log"), HasSubstr("work/more/another.py"));

  order.directory = folder_.string();
  order.command = {"python3", "work/program.py"};
  EXPECT_FALSE(zygotes.Fork(kReplica, order, {})) << "where it is the trial's own";
}

TEST_F(ZygotesTest, TalksOverTheControlSocket) {
  Write("program.py",
        "import os, socket\n"
        "s = socket.socket(fileno=3)\ns.sendall(s.recv(5).upper())\n");
  Zygotes zygotes(Options());
  const auto forked = Fork(zygotes, Order({"python3", "program.py"})).value();
  ASSERT_EQ(send(forked.control.get(), "hello", 5, 0), 5);
  pollfd said{forked.control.get(), POLLIN, 0};
  ASSERT_EQ(poll(&said, 1, 60'000), 1);
  char answer[8] = {};
  EXPECT_EQ(recv(forked.control.get(), answer, sizeof answer, 0), 5);
  EXPECT_STREQ(answer, "HELLO");
  pollfd ended{forked.pidfd.get(), POLLIN, 0};
  EXPECT_EQ(poll(&ended, 1, 60'000), 1);
  EXPECT_EQ(AwaitEnd(forked), 0);
}

TEST_F(ZygotesTest, OnlyProgramsThatHaveSpokenGetOne) {
  Write("program.py", "print('it ran')\n");
  const LaunchOrder order = Order({"python3", "program.py"});
  Zygotes zygotes(Options());
  EXPECT_FALSE(zygotes.Fork(kReplica, order, {}).has_value());
  zygotes.Ended(kReplica);
  zygotes.Spoke(kReplica, Zygotes::Clock::now());
  EXPECT_EQ(zygotes.size(), 0U);
  EXPECT_FALSE(zygotes.Fork(kReplica, Order({"sh", "-c", "exit 0"}), {}).has_value());
  zygotes.Spoke(kReplica, Zygotes::Clock::now());
  EXPECT_EQ(zygotes.size(), 0U);
  EXPECT_EQ(Read("forked.log"), "");
}

// What calls the functions of espalier.tune, here one of a module that this folder has.
class KnownProgramsTest : public ZygotesTest {
 protected:
  KnownProgramsTest() { Write("mine.py", "import sys\nprint('it ran')\nsys.exit(0)\n"); }

  LaunchOrder Call() const {
    LaunchOrder order = Order({"python3", "-m", "espalier._call", "mine:f"});
    order.environment["PYTHONPATH"] += ":" + folder_.string();
    return order;
  }
  static bool Awaited(Zygotes& zygotes, const LaunchOrder& order) {
    return zygotes.Awaited(order, {}, Zygotes::Clock::now());
  }
};

TEST_F(KnownProgramsTest, AreThoseOfAStudyThatExpectsElasticOnes) {
  Write("train.py", "print('it ran')\n");
  LaunchOrder order = Order({"python3", "train.py"});
  LaunchOrder shell = Order({"sh", "-c", "exit 0"});
  Zygotes zygotes(Options({}));
  EXPECT_FALSE(Awaited(zygotes, order));
  EXPECT_EQ(zygotes.size(), 0U);
  order.expects_elastic = shell.expects_elastic = true;
  EXPECT_FALSE(Awaited(zygotes, shell));
  EXPECT_TRUE(Awaited(zygotes, order));
  EXPECT_EQ(zygotes.size(), 1U);
}

TEST_F(KnownProgramsTest, WaitForTheirFirstZygoteAndAreForked) {
  Zygotes zygotes(Options({}));
  EXPECT_TRUE(Awaited(zygotes, Call()));
  EXPECT_TRUE(Awaited(zygotes, Call())) << "of another replica";
  EXPECT_EQ(zygotes.size(), 1U);
  EXPECT_FALSE(zygotes.TakeNews());
  Hear(zygotes, 60'000);
  EXPECT_TRUE(zygotes.TakeNews());
  EXPECT_FALSE(zygotes.TakeNews());
  EXPECT_FALSE(Awaited(zygotes, Call()));
  const auto forked = zygotes.Fork(kReplica, Call(), {});
  ASSERT_TRUE(forked.has_value()) << Read("zygotes.log");
  EXPECT_EQ(AwaitEnd(*forked), 0);
  EXPECT_EQ(Read("forked.log"), "it ran\n");
}

TEST_F(KnownProgramsTest, WhatSupervisesRanksIsExecutedBesideAZygoteOfItsOwn) {
  Write("rank.py", "print('a rank')\n");
  LaunchOrder order = Order({"/bin/sh", "-c", R"(kill -0 ${ESPALIER_OWN_ZYGOTE% *} && echo both)"});
  order.rank_command = {"python3", "rank.py"};
  order.environment["MASTER_PORT"] = "1";
  Zygotes zygotes(Options({"json", kElasticModule}));
  EXPECT_TRUE(Awaited(zygotes, order));
  Hear(zygotes, 60'000);
  order.environment["MASTER_PORT"] = "2";
  EXPECT_FALSE(Awaited(zygotes, order)) << "ranks of each trial meet elsewhere";
  const auto forked = zygotes.Fork(kReplica, order, {});
  ASSERT_TRUE(forked.has_value()) << Read("zygotes.log");
  EXPECT_EQ(AwaitEnd(*forked), 0);
  EXPECT_EQ(Read("forked.log"), "both\n");
}

TEST_F(KnownProgramsTest, OthersDoNotWait) {
  Zygotes zygotes(Options({}));
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"python3", "-m", "mine"},
        {"python3", "-m", "espalier._callers"},
        {"python3", "mine.py", "espalier._call"},
        {"sh", "-c", "python3 -m espalier._call mine:f"}}) {
    LaunchOrder order = Call();
    order.command = command;
    EXPECT_FALSE(Awaited(zygotes, order)) << command[2];
  }
  EXPECT_EQ(zygotes.size(), 0U);
}

TEST_F(KnownProgramsTest, DoNotWaitForOneThatIsRefusedOrDiesTooOften) {
  Zygotes refused(Options({"no_such_module"}));
  EXPECT_TRUE(Awaited(refused, Call()));
  Hear(refused, 60'000);
  EXPECT_TRUE(refused.TakeNews());
  EXPECT_FALSE(Awaited(refused, Call()));
  EXPECT_FALSE(refused.Fork(kReplica, Call(), {}).has_value());

  Zygotes killed(Options({}));
  for (int failures = 0; failures < kMaxZygoteFailures; ++failures) {
    EXPECT_TRUE(Awaited(killed, Call()));
    kill(*killed.pids().begin(), SIGKILL);
    for (int i = 0; i < 2 && killed.size() > 0; ++i) Hear(killed, 60'000);
    EXPECT_TRUE(killed.TakeNews());
  }
  EXPECT_FALSE(Awaited(killed, Call()));
}

// A zygote that hangs is given up in the end, and those that wait are told so.
TEST_F(KnownProgramsTest, DoNotWaitWithoutEnd) {
  Zygotes zygotes(Options({}));
  const auto begin = Zygotes::Clock::now();
  EXPECT_TRUE(zygotes.Awaited(Call(), {}, begin));
  kill(*zygotes.pids().begin(), SIGSTOP);
  EXPECT_EQ(zygotes.NextTime(), begin + kMaxZygoteImport);
  zygotes.KeepTime(begin + kMaxZygoteImport);
  EXPECT_TRUE(zygotes.TakeNews());
  EXPECT_FALSE(Awaited(zygotes, Call())) << "nor for the next one, which may hang as well";
}

TEST_F(KnownProgramsTest, EndNoZygoteThatOthersWaitFor) {
  Zygotes zygotes(Options({}));
  LaunchOrder order = Call();
  const auto kind = [&](std::size_t i) {
    order.environment["KIND"] = std::to_string(i);
    return order;
  };
  for (std::size_t i = 0; i < kMaxZygotes; ++i) EXPECT_TRUE(Awaited(zygotes, kind(i)));
  EXPECT_FALSE(Awaited(zygotes, kind(kMaxZygotes))) << "it is started by itself";
  for (std::size_t i = 0; i < kMaxZygotes; ++i) EXPECT_TRUE(Awaited(zygotes, kind(i)));
  Hear(zygotes, 60'000);  // one at least is ready, and makes room
  EXPECT_TRUE(Awaited(zygotes, kind(kMaxZygotes)));
  EXPECT_EQ(zygotes.size(), kMaxZygotes);
}

TEST_F(ZygotesTest, WhatCannotBeImportedIsNotTriedAgain) {
  Write("program.py", "print('it ran')\n");
  const LaunchOrder order = Order({"python3", "program.py"});
  for (const char* script :
       {"raise OSError('broken\\nmodule')\n",
        "import threading\n"
        "threading.Thread(target=threading.Event().wait, daemon=True).start()\n"}) {
    Write("imported.py", script);
    LaunchOrder with_module = order;
    with_module.environment["PYTHONPATH"] += ":" + folder_.string();
    Zygotes zygotes(Options({"imported"}));
    EXPECT_FALSE(Fork(zygotes, with_module).has_value());
    EXPECT_FALSE(zygotes.Fork(kReplica, with_module, {}).has_value());
    zygotes.Spoke(kReplica, Zygotes::Clock::now());
    EXPECT_EQ(zygotes.size(), 0U);
    EXPECT_FALSE(Fork(zygotes, order).has_value())
        << "another kind: there is no such module at all";
  }
}

TEST_F(ZygotesTest, OneThatDiesIsReplacedAndOneThatHangsIsGivenUp) {
  Write("program.py", "print('it ran')\n");
  const LaunchOrder order = Order({"python3", "program.py"});
  ZygoteOptions options = Options();
  options.fork_within = std::chrono::milliseconds(300);
  Zygotes zygotes(options);
  const auto parent = [&] {
    std::ifstream children("/proc/self/task/" + std::to_string(getpid()) + "/children");
    pid_t pid = 0;
    children >> pid;
    return pid;
  };
  ASSERT_FALSE(zygotes.Fork(kReplica, order, {}).has_value());
  zygotes.Spoke(kReplica, Zygotes::Clock::now());
  ASSERT_EQ(zygotes.size(), 1U);
  ASSERT_GT(parent(), 0);
  kill(parent(), SIGKILL);
  // It may have said before that it is ready.
  for (int i = 0; i < 2 && zygotes.size() > 0; ++i) Hear(zygotes, 60'000);
  EXPECT_EQ(zygotes.size(), 0U);

  for (int failures = 1; failures < kMaxZygoteFailures; ++failures) {
    zygotes.Fork(kReplica, order, {});
    zygotes.Spoke(kReplica, Zygotes::Clock::now());
    Hear(zygotes, 60'000);  // ready
    ASSERT_EQ(zygotes.size(), 1U);
    kill(-parent(), SIGSTOP);  // with the replica that it may have forked already
    EXPECT_FALSE(zygotes.Fork(kReplica, order, {}).has_value());
    EXPECT_EQ(zygotes.size(), 0U);
    EXPECT_EQ(parent(), 0) << "it is gone, and so is what it had begun";
  }
  EXPECT_EQ(Read("forked.log"), "") << "nothing has run twice";
  zygotes.Fork(kReplica, order, {});
  zygotes.Spoke(kReplica, Zygotes::Clock::now());
  EXPECT_EQ(zygotes.size(), 0U) << "it has come to grief too often";
}

// What it has imported may start others while it forks; their parents end, and this process has
// them.
TEST_F(ZygotesTest, OrphansThatAreAdoptedBesideAReplicaAreReaped) {
  ASSERT_EQ(mkfifo((folder_ / "end").c_str(), 0600), 0);
  Write("program.py", "");
  Write("orphans.py",
        "import os\n"
        "def after_in_child():\n"
        "    try:\n"
        "        os.mkdir('" +
            (folder_ / "once").string() +
            "')\n"
            "    except FileExistsError:\n"
            "        return\n"
            "    if os.fork() == 0:\n"
            "        os.setsid()\n"
            "        os.execvp('sh', ['sh', '-c', 'read x < " +
            (folder_ / "end").string() +
            "'])\n"
            "os.register_at_fork(after_in_child=after_in_child)\n");
  LaunchOrder order = Order({"python3", "program.py"});
  order.environment["PYTHONPATH"] += ":" + folder_.string();
  Zygotes zygotes(Options({"orphans"}));
  ASSERT_EQ(AwaitEnd(Fork(zygotes, order).value()), 0);
  const auto watched = [&] {
    std::vector<pollfd> fds;
    zygotes.Watch(fds);
    return fds.size();
  };
  EXPECT_EQ(watched(), 2U) << "the zygote and the orphan";
  const FileDescriptor end(open((folder_ / "end").c_str(), O_WRONLY));  // once it reads
  ASSERT_EQ(write(end.get(), "\n", 1), 1);
  Hear(zygotes, 60'000);
  EXPECT_EQ(watched(), 1U);
  zygotes.EndAll();
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "no child is left";
}

// Three replicas die while they wait to be asked for; the next one is forked when it is.
TEST_F(ZygotesTest, WhatDiesWhileItWaitsIsNotForkedForEver) {
  Write("program.py", "");
  const std::string forked = (folder_ / "forked").string();
  Write("dying.py",
        "import os\n"
        "def after_in_child():\n"
        "    with open('" +
            forked +
            "', 'a') as file:\n"
            "        file.write('.')\n"
            "    if os.path.getsize('" +
            forked +
            "') in (2, 4, 6):  # the first of each two is the process between\n"
            "        os._exit(9)\n"
            "os.register_at_fork(after_in_child=after_in_child)\n");
  LaunchOrder order = Order({"python3", "program.py"});
  order.environment["PYTHONPATH"] += ":" + folder_.string();
  Zygotes zygotes(Options({"dying"}));
  ASSERT_EQ(AwaitEnd(Fork(zygotes, order).value()), 0);
  EXPECT_EQ(Read("forked"), "........");
  ASSERT_EQ(AwaitEnd(Fork(zygotes, order).value()), 0);
  EXPECT_EQ(Read("forked"), "..........");
}

TEST_F(ZygotesTest, TheirNumberAndTheirIdleTimeAreBounded) {
  Write("program.py", "");
  LaunchOrder order = Order({"python3", "program.py"});
  Zygotes zygotes(Options({}));
  const auto begin = Zygotes::Clock::now();
  for (std::size_t i = 0; i < kMaxZygotes + 2; ++i) {
    order.environment["KIND"] = std::to_string(i);
    EXPECT_FALSE(zygotes.Fork(kReplica, order, {}).has_value());
    zygotes.Spoke(kReplica, begin + std::chrono::seconds(i));
  }
  EXPECT_EQ(zygotes.size(), kMaxZygotes);
  EXPECT_EQ(zygotes.NextTime(), begin + std::chrono::seconds(2) + kMaxZygoteImport);
  zygotes.KeepTime(begin + std::chrono::seconds(2) + kMaxZygoteImport);
  EXPECT_EQ(zygotes.size(), kMaxZygotes - 1);
  zygotes.KeepTime(begin + 2 * kMaxZygoteIdle);
  EXPECT_EQ(zygotes.size(), 0U);
  EXPECT_EQ(zygotes.NextTime(), Zygotes::Clock::time_point::max());
}

// The zygote has those of one slot, as most that are forked from it.
TEST_F(ZygotesTest, AForkedProgramWithSeveralSlotsHasTheThreadsOfAll) {
  Write("torch.py", R"py(
class cuda:
    _cached_device_count = None
    is_initialized = staticmethod(lambda: False)
threads = "as they were"
def set_num_threads(count):
    global threads
    threads = count
)py");
  Write("train.py", "import torch\nprint('threads', torch.threads)\n");
  LaunchOrder order = Order({"python3", "train.py"});
  order.environment["PYTHONPATH"] = folder_.string() + ":" + ESPALIER_PYTHON_PACKAGE;
  order.environment["ESPALIER_THREADS"] = "1";
  LaunchOrder several = order;
  several.environment["ESPALIER_THREADS"] = several.environment["OMP_NUM_THREADS"] = "4";
  several.environment["ESPALIER_OWN_THREADS"] = "1";
  Zygotes zygotes(Options({"torch"}));
  for (const LaunchOrder& each : {order, several}) {
    const auto forked = Fork(zygotes, each);
    ASSERT_TRUE(forked.has_value());
    EXPECT_EQ(AwaitEnd(*forked), 0);
  }
  EXPECT_EQ(zygotes.size(), 1U);
  EXPECT_EQ(Read("forked.log"), "threads as they were\nthreads 4\n");
}

}  // namespace
}  // namespace espalier
