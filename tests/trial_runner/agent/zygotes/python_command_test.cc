#include "trial_runner/agent/zygotes/python_command.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "trial_runner/agent/zygotes/forkable_command.h"

namespace espalier {
namespace {

class PythonCommandTest : public ::testing::Test {
 protected:
  PythonCommandTest() {
    std::string name = (std::filesystem::temp_directory_path() / "command-XXXXXX").string();
    folder_ = mkdtemp(name.data());
    for (const char* file :
         {"train.py", "train", "python3", "python3.12", "python2", "pythonista"}) {
      std::ofstream(folder_ / file) << "#!/bin/sh\n";
      std::filesystem::permissions(folder_ / file, std::filesystem::perms::owner_all);
    }
  }
  ~PythonCommandTest() override { std::filesystem::remove_all(folder_); }

  LaunchOrder Order(std::vector<std::string> command) const {
    LaunchOrder order;
    order.command = std::move(command);
    order.directory = folder_.string();
    order.environment = {{"PATH", folder_.string()}, {"HOME", "/root"}};
    return order;
  }
  std::string Key(const LaunchOrder& order, const std::vector<std::string>& modules = {}) const {
    return ZygoteKey(order, ReadPythonCommand(order).value(), modules);
  }

  std::filesystem::path folder_;
};

TEST_F(PythonCommandTest, KnowsScriptsAndModules) {
  const auto script = ReadPythonCommand(Order({"python3", "train.py", "-m", "x"}));
  ASSERT_TRUE(script.has_value());
  EXPECT_FALSE(script->is_module);
  EXPECT_EQ(script->program, 1U);
  EXPECT_TRUE(script->options.empty());
  const auto module = ReadPythonCommand(Order({"python3.12", "-u", "-m", "pkg.train", "--x"}));
  ASSERT_TRUE(module.has_value());
  EXPECT_TRUE(module->is_module);
  EXPECT_EQ(module->program, 3U);
  EXPECT_EQ(module->options, std::vector<std::string>{"-u"});
  const std::string absolute = (folder_ / "train.py").string();
  EXPECT_TRUE(ReadPythonCommand(Order({(folder_ / "python3").string(), absolute})).has_value());
}

TEST_F(PythonCommandTest, LeavesAllElseToTheInterpreter) {
  const std::vector<std::vector<std::string>> others = {
      {},
      {"python3"},
      {"python3", "-u"},
      {"python3", "-c", "pass"},
      {"python3", "-"},
      {"python3", "-m"},
      {"python3", "-m", ""},
      {"python3", "-O", "train.py"},
      {"python3", "gone.py"},
      {"python3", "train"},  // may be an archive
      {"python3", "."},
      {"python2", "train.py"},
      {"pythonista", "train.py"},
      {"python3.13", "train.py"},  // not installed
      {"./python3", "train.py"},
      {"sh", "-c", "python3 train.py"},
      {"env", "python3", "train.py"}};
  for (const auto& command : others) {
    EXPECT_FALSE(ReadPythonCommand(Order(command)).has_value())
        << (command.empty() ? "" : command.back());
  }
  LaunchOrder nowhere = Order({"python3", (folder_ / "train.py").string()});
  EXPECT_TRUE(ReadPythonCommand(nowhere).has_value());
  nowhere.directory = "/no/such/folder";
  EXPECT_FALSE(ReadPythonCommand(nowhere).has_value());
}

TEST_F(PythonCommandTest, RelativePathsAreOfTheFolderInWhichProgramsStart) {
  LaunchOrder relative = Order({"python3", "train.py"});
  relative.log_path = "/agent/study/trial-1/replica-1.log";
  relative.environment["PYTHONPATH"] = "/a:.:b/../c:";
  ASSERT_TRUE(ReadPythonCommand(relative).has_value());
  const std::string folder = folder_.string();
  const LaunchOrder whole = WithWholePaths(relative);
  EXPECT_EQ(whole.environment.at("PYTHONPATH"), "/a:" + folder + ":" + folder + "/c:" + folder);
  EXPECT_EQ(ReadForkableCommand(relative, {})->key, Key(whole));
  EXPECT_EQ(ReadForkableCommand(relative, {})->zygote.environment.at("PYTHONPATH"),
            whole.environment.at("PYTHONPATH"));
  LaunchOrder elsewhere = relative;
  elsewhere.directory = "/tmp";
  elsewhere.command[1] = (folder_ / "train.py").string();
  EXPECT_NE(ReadForkableCommand(elsewhere, {})->key, Key(whole));
}

TEST_F(PythonCommandTest, NobodyImportsFromATrialsOwnFolderButItself) {
  LaunchOrder own = Order({"python3", "train.py"});
  own.log_path = (folder_ / "replica-1.log").string();
  own.environment["PYTHONPATH"] = "/a:.";
  EXPECT_TRUE(ImportsFromItsOwnFolder(own));
  EXPECT_FALSE(ReadPythonCommand(own).has_value());
  own.environment["PYTHONPATH"] = "/a";
  EXPECT_FALSE(ImportsFromItsOwnFolder(own));
  EXPECT_TRUE(ReadPythonCommand(own).has_value());
}

TEST_F(PythonCommandTest, TellsApartWhatIsReadWhenModulesAreImported) {
  const LaunchOrder order = Order({"python3", "train.py"});
  const std::string key = Key(order);
  LaunchOrder other = order;
  other.command = {"python3", "-m", "another", "--lr", "1"};
  other.environment["ESPALIER_TRIAL_ID"] = "7";
  other.environment["CUDA_VISIBLE_DEVICES"] = "GPU-1";
  EXPECT_EQ(Key(other), key);
  for (const char* variable :
       {"LD_PRELOAD", "PYTHONHASHSEED", "MALLOC_ARENA_MAX", "OMP_NUM_THREADS", "TORCH_LOGS",
        "ESPALIER_TORCH_LIBRARY", "ANYTHING"}) {
    LaunchOrder different = order;
    different.environment[variable] = "1";
    EXPECT_NE(Key(different), key) << variable;
  }
  LaunchOrder different = order;
  different.command[0] = "python3.12";
  EXPECT_NE(Key(different), key);
  different = Order({"python3", "-u", "train.py"});
  EXPECT_NE(Key(different), key);
  different = order;
  different.cpus = {0};
  EXPECT_NE(Key(different), key);
  EXPECT_NE(Key(order, {"transformers"}), key);
}

// A trial's first process, which may use all its slots, is forked from the zygote of those that
// join.
TEST_F(PythonCommandTest, OneZygoteServesProcessesOfOneSlotAndOfSeveral) {
  LaunchOrder one = Order({"python3", "train.py"});
  one.environment["ESPALIER_THREADS"] = one.environment["OMP_NUM_THREADS"] = "2";
  LaunchOrder all = Order({"python3", "train.py"});
  all.environment["ESPALIER_THREADS"] = all.environment["OMP_NUM_THREADS"] = "8";
  all.environment["ESPALIER_OWN_THREADS"] = "2";
  EXPECT_EQ(Key(all), Key(one));
  EXPECT_EQ(ZygoteEnvironment(all).at("OMP_NUM_THREADS"), "2");
  all.environment["OMP_NUM_THREADS"] = "6";
  EXPECT_EQ(ZygoteEnvironment(all).at("OMP_NUM_THREADS"), "6") << "as its study says";
}

TEST_F(PythonCommandTest, AZygoteIsNoReplica) {
  LaunchOrder order = Order({"python3", "train.py"});
  order.environment["ESPALIER_CONTROL_FD"] = "3";
  order.environment["ESPALIER_AGENT_RUN"] = "mark";
  order.environment["ESPALIER_TORCH_LIBRARY"] = "/lib.so";
  const std::map<std::string, std::string> expected = {{"ESPALIER_AGENT_RUN", "mark"},
                                                       {"ESPALIER_TORCH_LIBRARY", "/lib.so"},
                                                       {"HOME", "/root"},
                                                       {"PATH", folder_.string()}};
  EXPECT_EQ(ZygoteEnvironment(order), expected);
}

}  // namespace
}  // namespace espalier
