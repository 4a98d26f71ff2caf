// What every engine promises, whatever its nodes are. Processes are stand-ins for `tuner agent`.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "tests/base/plugin_rows.h"
#include "tests/storage/scratch_folder.h"
#include "tuner/server/engines.h"
#include "tuner/server/node_process.h"
#include "tuner/simulator/simulated_engine.h"

namespace espalier {
namespace {

namespace fs = std::filesystem;

// An engine and what can be seen of its nodes.
class EngineUnderTest {
 public:
  virtual ~EngineUnderTest() = default;
  virtual Engine& engine() = 0;
  // Lets pass what time the engine needs until the condition holds; false: it does not.
  virtual bool Await(const std::function<bool()>& condition) = 0;
  virtual int Joined(const std::string& name) = 0;  // how often, so far
  virtual bool Here(const std::string& name) = 0;
};

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
  SimulatedEngine engine_{20, [this] { return now_; }, [](double) {}};
  std::map<std::string, int> joined_;
  std::map<std::string, bool> here_;
};

// Says that it has begun, and ends when it is told to.
constexpr const char* kStandIn = R"(#!/bin/bash
folder=$7
echo "$@" >> $folder/joined
trap 'rm -f $folder/here; exit 0' TERM
touch $folder/here
while true; do sleep 0.05; done
)";

// Waits for a condition that other processes bring about.
bool AwaitProcesses(const std::function<bool()>& condition) {
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > patience) return false;
    never.wait_for(lock, std::chrono::milliseconds(5));
  }
  return true;
}

class LocalUnderTest final : public EngineUnderTest {
 public:
  LocalUnderTest() {
    const fs::path program = fs::path(folder_.path()) / "stand-in";
    std::ofstream(program) << kStandIn;
    fs::permissions(program, fs::perms::owner_all);
    engine_ = Make();
    engine_->Open("127.0.0.1:1", "");
  }

  std::unique_ptr<Engine> Make() {
    auto made =
        MakeEngine("local", {{"end_grace_s", 60}}, {Program(), {"--slots", "1"}, Nodes().string()});
    EXPECT_TRUE(made.ok()) << made.status();
    return *std::move(made);
  }

  Engine& engine() override { return *engine_; }
  bool Await(const std::function<bool()>& condition) override { return AwaitProcesses(condition); }
  int Joined(const std::string& name) override {
    std::ifstream lines(Nodes() / name / "joined");
    int count = 0;
    for (std::string line; std::getline(lines, line);) ++count;
    return count;
  }
  bool Here(const std::string& name) override { return fs::exists(Nodes() / name / "here"); }

  std::string Program() const { return folder_.File("stand-in"); }
  fs::path Nodes() const { return fs::path(folder_.path()) / "nodes"; }
  std::unique_ptr<Engine>& local() { return engine_; }

 private:
  ScratchFolder folder_;
  std::unique_ptr<Engine> engine_;
};

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

INSTANTIATE_TEST_SUITE_P(
    All, EngineContract,
    ::testing::Values(EngineRow{"simulated",
                                []() -> std::unique_ptr<EngineUnderTest> {
                                  return std::make_unique<SimulatedUnderTest>();
                                }},
                      EngineRow{"local",
                                []() -> std::unique_ptr<EngineUnderTest> {
                                  return std::make_unique<LocalUnderTest>();
                                }}),
    [](const auto& row) { return row.param.name; });

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
  ASSERT_TRUE(local.Await([&] { return local.Here("pool-1"); }));
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
  EXPECT_EQ(error("cloudy", {}), "engine \"cloudy\" is unknown; known are local");
  EXPECT_EQ(error("local", {{"nodes", 3}}),
            "engine \"local\" has no option \"nodes\"; it has end_grace_s");
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
    auto node = NodeProcess::Start(
        {local_.Program(), {}, local_.Nodes().string(), "pool-1", "127.0.0.1:1", ""});
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
