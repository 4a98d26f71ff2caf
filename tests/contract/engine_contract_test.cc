// What every engine promises, whatever its nodes are. Processes are stand-ins for `tuner agent`.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/base/plugin_rows.h"
#include "tests/contract/engines_under_test.h"
#include "tests/storage/scratch_folder.h"
#include "tuner/server/engines/engines.h"
#include "tuner/server/engines/node_process.h"
#include "tuner/server/engines/program_run.h"
#include "tuner/simulator/simulated_engine.h"

namespace espalier {
namespace {

class SimulatedUnderTest final : public EngineUnderTest {
 public:
  Engine& engine() override { return engine_; }
  bool Await(const std::function<bool()>& condition) override {
    for (int i = 0; i < 100 && !condition(); ++i) {
      now_ = After(now_, 1);
      for (const SimulatedEngine::Happening& happening : engine_.TakeDue()) {
        here_[happening.name] = happening.joins;
        joined_[happening.name] += happening.joins ? 1 : 0;
      }
    }
    return condition();
  }
  int Joined(const std::string& name) override { return joined_[name]; }
  bool Here(const std::string& name) override { return here_[name]; }

 private:
  Time now_{1};
  SimulatedEngine engine_{[](const std::string&) { return 20; }, [this] { return now_; },
                          [](double) {}};
  std::map<std::string, int> joined_;
  std::map<std::string, bool> here_;
};

class LocalUnderTest final : public ProcessesUnderTest {
 public:
  LocalUnderTest() : engine_(Make()) { engine_->Open("127.0.0.1:1", ""); }

  std::unique_ptr<Engine> Make() { return ProcessesUnderTest::Make("local"); }
  Engine& engine() override { return *engine_; }
  std::unique_ptr<Engine>& local() { return engine_; }

 private:
  std::unique_ptr<Engine> engine_;
};

#ifdef ESPALIER_SLURM
// A real Slurm for all tests of the process.
class SlurmCluster final : public ::testing::Environment {
 public:
  void TearDown() override {
    if (up_) Run("down.sh", {});
  }
  void Need() {
    if (up_) return;
    up_ = true;
    Run("up.sh", {"2", "1"});
    setenv("SLURM_CONF", folder_.File("slurm.conf").c_str(), 1);
  }

 private:
  void Run(const std::string& script, const std::vector<std::string>& more) {
    std::vector<std::string> words = {std::string(ESPALIER_SLURM) + "/" + script, folder_.path()};
    words.insert(words.end(), more.begin(), more.end());
    const auto end = RunProgram({.command = words, .limit_s = 120});
    ASSERT_TRUE(end.ok()) << end.status();
    ASSERT_EQ(end->exit_code, 0) << end->errors;
  }

  ScratchFolder folder_;
  bool up_ = false;
};
auto* const slurm =
    static_cast<SlurmCluster*>(::testing::AddGlobalTestEnvironment(new SlurmCluster));

class SlurmUnderTest final : public ProcessesUnderTest {
 public:
  SlurmUnderTest() {
    slurm->Need();
    engine_ = Make("slurm", {{"gres", {"gpu:1"}}, {"sbatch", {"--comment=a $(test)"}}});
    engine_->Open("127.0.0.1:1", "");
  }
  Engine& engine() override { return *engine_; }

 private:
  std::unique_ptr<Engine> engine_;
};
#endif

struct EngineRow {
  const char* name;
  std::unique_ptr<EngineUnderTest> (*make)();
};

class EngineContract : public ::testing::TestWithParam<EngineRow> {
 protected:
  EngineContract() : made_(GetParam().make()) {}

  void Start(const std::string& name) { made_->engine().StartNode(name); }
  void Release(const std::string& name) { made_->engine().ReleaseNode(name); }
  bool Comes(const std::string& name) {
    return made_->Await([&] { return made_->Here(name); });
  }
  bool Goes(const std::string& name) {
    return made_->Await([&] { return !made_->Here(name); });
  }

  std::unique_ptr<EngineUnderTest> made_;
};

TEST_P(EngineContract, ANodeThatWasAskedForJoinsOnceHoweverOftenItIsAskedFor) {
  Start("pool-1");
  Start("pool-1");
  ASSERT_TRUE(Comes("pool-1"));
  Start("pool-1");
  Start("pool-2");
  ASSERT_TRUE(Comes("pool-2"));
  EXPECT_EQ(made_->Joined("pool-1"), 1);
}

TEST_P(EngineContract, AReleasedNodeLeavesAndOthersStay) {
  Start("pool-1");
  Start("pool-2");
  ASSERT_TRUE(Comes("pool-1") && Comes("pool-2"));
  Release("pool-1");
  Release("pool-1");
  ASSERT_TRUE(Goes("pool-1"));
  EXPECT_TRUE(made_->Here("pool-2"));
}

TEST_P(EngineContract, WhatWasNeverAskedForCanBeReleased) {
  Release("pool-7");
  Start("pool-1");
  ASSERT_TRUE(Comes("pool-1"));
  EXPECT_FALSE(made_->Here("pool-7"));
}

TEST_P(EngineContract, ANameThatWasReleasedMeansANewNode) {
  Start("pool-1");
  ASSERT_TRUE(Comes("pool-1"));
  Release("pool-1");
  Start("pool-1");
  ASSERT_TRUE(made_->Await([&] { return made_->Joined("pool-1") == 2 && made_->Here("pool-1"); }));
}

TEST_P(EngineContract, NoNodeIsLeftWhenItStopsAndNoneComesAnyMore) {
  Start("pool-1");
  ASSERT_TRUE(Comes("pool-1"));
  Start("pool-2");
  made_->engine().Stop();
  EXPECT_TRUE(Goes("pool-1"));
  EXPECT_TRUE(Goes("pool-2"));
  Start("pool-3");
  EXPECT_EQ(made_->Joined("pool-3"), 0);
}

template <typename Made>
EngineRow Row(const char* name) {
  return {name, []() -> std::unique_ptr<EngineUnderTest> { return std::make_unique<Made>(); }};
}

INSTANTIATE_TEST_SUITE_P(All, EngineContract,
                         ::testing::Values(Row<SimulatedUnderTest>("simulated"),
                                           Row<LocalUnderTest>("local"),
                                           Row<FakeUnderTest>("reconciling"),
                                           Row<CommandUnderTest>("command"),
                                           Row<KubernetesUnderTest>("kubernetes")),
                         [](const auto& row) { return row.param.name; });
#ifdef ESPALIER_SLURM
INSTANTIATE_TEST_SUITE_P(Slurm, EngineContract, ::testing::Values(Row<SlurmUnderTest>("slurm")),
                         [](const auto& row) { return row.param.name; });
#endif

// ---- what only processes can be asked ---------------------------------------------------------

TEST(SimulatedEngine, ANodeThatIsReleasedBeforeItsTimeNeverJoins) {
  SimulatedUnderTest simulated;
  simulated.engine().StartNode("pool-1");
  simulated.engine().ReleaseNode("pool-1");
  EXPECT_FALSE(simulated.Await([&] { return simulated.Joined("pool-1") > 0; }));
}

TEST(LocalEngine, NoProcessIsLeftWhenItStops) {
  LocalUnderTest local;
  local.engine().StartNode("pool-1");
  ASSERT_TRUE(local.Await([&] { return local.Here("pool-1"); }));
  local.local()->Stop();
  EXPECT_FALSE(local.Here("pool-1"));
  EXPECT_TRUE(NodeProcess::Find(local.Nodes().string()).empty());
  local.engine().StartNode("pool-2");
  EXPECT_FALSE(fs::exists(local.Nodes() / "pool-2")) << "too late";
}

TEST(LocalEngine, OneThatDiedIsStartedWhenItIsAskedForAgain) {
  LocalUnderTest local;
  local.engine().StartNode("pool-1");
  // Its process may have begun before the engine has written down which it is.
  ASSERT_TRUE(local.Await(
      [&] { return local.Here("pool-1") && !NodeProcess::Find(local.Nodes().string()).empty(); }));
  for (const NodeProcess& node : NodeProcess::Find(local.Nodes().string())) node.Signal(SIGKILL);
  // The engine sees the death in its own time; until then the request is one for a living node.
  ASSERT_TRUE(local.Await([&] {
    local.engine().StartNode("pool-1");
    return local.Joined("pool-1") == 2;
  }));
}

TEST(Engines, TellWhatTheyDoAndTake) { ExpectTold(Engines().Infos()); }

TEST(Engines, AreNamedWhereTheyRefuse) {
  const auto error = [](const char* name, const Options& options) {
    return std::string(MakeEngine(name, options, {}).status().message());
  };
  EXPECT_EQ(error("cloudy", {}),
            "engine \"cloudy\" is unknown; known are local, command, slurm, kubernetes");
  EXPECT_EQ(error("local", {{"nodes", 3}}),
            "engine \"local\" has no option \"nodes\"; it has end_grace_s");
  EXPECT_EQ(error("command", {}),
            "engine \"command\": option \"program\" is needed: the program to ask, and once more "
            "for each argument of it");
  EXPECT_EQ(error("slurm", {{"partition", 3}}),
            "engine \"slurm\": option \"partition\" needs text, got 3");
  EXPECT_EQ(
      std::string(MakeEngine("slurm", {}, {}, {{"partition", {"a", "b"}}}).status().message()),
      "engine \"slurm\": option \"partition\" needs text, got \"a\", \"b\"");
  EXPECT_EQ(error("kubernetes", {}),
            "engine \"kubernetes\": option \"image\" needs the container image of the pods");
  EXPECT_EQ(error("local", {{"end_grace_s", -1}}),
            "engine \"local\": option \"end_grace_s\" needs a number >= 0, got -1");
}

TEST(LocalEngine, OnlyOneUsesADirectory) {
  LocalUnderTest local;
  const auto second = MakeEngine("local", {}, {local.Program(), {}, local.Nodes().string()});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.status().message()),
              ::testing::AllOf(::testing::StartsWith("engine \"local\": directory of nodes"),
                               ::testing::HasSubstr("is used by another service")));
}

// A process that dies without ending its engine leaves nodes behind: here, ones that were started
// by no engine at all.
class NodesOfADeadService : public ::testing::Test {
 protected:
  void SetUp() override {
    local_.local()->Stop();
    local_.local().reset();
    auto node = NodeProcess::Start({.executable = local_.Program(),
                                    .arguments = {},
                                    .directory = local_.Nodes().string(),
                                    .checkpoints = (local_.Nodes() / "checkpoints").string(),
                                    .name = "pool-1",
                                    .grpc_address = "127.0.0.1:1",
                                    .http_address = ""});
    ASSERT_TRUE(node.ok()) << node.status();
    ASSERT_TRUE(local_.Await([&] { return local_.Here("pool-1"); }));
    local_.local() = local_.Make();
  }

  LocalUnderTest local_;
};

TEST_F(NodesOfADeadService, AreTakenOverOnTheSameAddress) {
  local_.local()->Open("127.0.0.1:1", "");
  local_.engine().StartNode("pool-1");
  local_.engine().StartNode("pool-2");
  ASSERT_TRUE(local_.Await([&] { return local_.Here("pool-2"); }));
  EXPECT_EQ(local_.Joined("pool-1"), 1);
  local_.engine().ReleaseNode("pool-1");
  EXPECT_TRUE(local_.Await([&] { return !local_.Here("pool-1"); }));
}

TEST_F(NodesOfADeadService, AreEndedOnAnother) {
  local_.local()->Open("127.0.0.1:2", "");
  EXPECT_TRUE(local_.Await([&] { return !local_.Here("pool-1"); }));
}

TEST_F(NodesOfADeadService, ANumberThatBelongsToAnotherProcessNowIsLeftAlone) {
  local_.local()->Stop();
  const fs::path folder = local_.Nodes() / "pool-9";
  fs::create_directories(folder);
  std::ofstream(folder / "node.pid") << getpid() << " 1 127.0.0.1:2\n";
  for (const NodeProcess& node : NodeProcess::Find(local_.Nodes().string())) {
    EXPECT_EQ(node.name(), "pool-1");
    node.Signal(SIGTERM);
  }
  EXPECT_FALSE(fs::exists(folder / "node.pid"));
}

}  // namespace
}  // namespace espalier
