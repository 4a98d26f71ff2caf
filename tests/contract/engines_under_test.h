#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "tests/contract/fake_machines.h"
#include "tests/server/engines/small_kubernetes.h"
#include "tests/storage/scratch_folder.h"
#include "tuner/server/engines/engines.h"
#include "tuner/server/engines/reconciling_engine.h"

namespace espalier {

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

// Says that it has begun, and ends when it is told to.
inline constexpr const char* kStandIn = R"(#!/bin/bash
folder=$7
echo "$@" >> $folder/joined
trap 'rm -f $folder/here; exit 0' TERM
touch $folder/here
while true; do sleep 0.05; done
)";

// Waits for a condition that other processes bring about.
inline bool AwaitProcesses(const std::function<bool()>& condition) {
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

// Nodes that are processes of this machine, by whatever way.
class ProcessesUnderTest : public EngineUnderTest {
 public:
  ProcessesUnderTest() {
    const fs::path program = fs::path(folder_.path()) / "stand-in";
    std::ofstream(program) << kStandIn;
    fs::permissions(program, fs::perms::owner_all);
  }

  // One of the table, with these nodes.
  std::unique_ptr<Engine> Make(const char* name, const TextOptions& texts = {}) {
    auto made = MakeEngine(
        name, {{"end_grace_s", 60}},
        {.executable = Program(), .arguments = {"--slots", "1"}, .directory = Nodes().string()},
        texts);
    EXPECT_TRUE(made.ok()) << made.status();
    return *std::move(made);
  }

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
  const ScratchFolder& folder() const { return folder_; }

 private:
  ScratchFolder folder_;
};

// The example of the docs.
class CommandUnderTest final : public ProcessesUnderTest {
 public:
  CommandUnderTest()
      : engine_(
            Make("command", {{"program", {ESPALIER_EXAMPLE_ENGINE, folder().File("machines")}}})) {
    engine_->Open("127.0.0.1:1", "");
  }
  Engine& engine() override { return *engine_; }

 private:
  std::unique_ptr<Engine> engine_;
};

// Pods in a namespace of this engine's own.
class KubernetesUnderTest final : public EngineUnderTest {
 public:
  KubernetesUnderTest() {
    const ApiServer server = kubernetes_.server();
    auto made = MakeEngine(
        "kubernetes", {},
        {.executable = "tuner", .arguments = {"--slots", "1"}, .directory = folder_.File("nodes")},
        {{"image", {"torch:2"}},
         {"server", {server.address}},
         {"ca", {server.ca_file}},
         {"token", {server.token_file}},
         {"namespace", {server.space}}});
    EXPECT_TRUE(made.ok()) << made.status();
    engine_ = *std::move(made);
    const absl::Status turn = engine_->AwaitTurn([](double) { return true; });
    EXPECT_TRUE(turn.ok()) << turn;
    engine_->Open("127.0.0.1:1", "");
  }
  Engine& engine() override { return *engine_; }
  bool Await(const std::function<bool()>& condition) override { return AwaitProcesses(condition); }
  int Joined(const std::string& name) override { return kubernetes_.Joined(name); }
  bool Here(const std::string& name) override { return kubernetes_.Runs(name); }
  SmallKubernetes& kubernetes() { return kubernetes_; }

 private:
  const ScratchFolder folder_;
  SmallKubernetes kubernetes_;
  std::unique_ptr<Engine> engine_;
};

inline constexpr MachineTimes kSoon = {.settle_s = 0.05,
                                       .retry_s = 0.005,
                                       .most_retry_s = 0.05,
                                       .end_grace_s = 0.01,
                                       .wait_s = 0.01,
                                       .successor_wait_s = 60};
inline constexpr LookTimes kOften = {
    .first_s = 0.002, .most_s = 0.01, .idle_s = 0.01, .stop_s = 10, .stop_in_vain_s = 0};

// Machines that can fail as real ones do; see below.
class FakeUnderTest final : public EngineUnderTest {
 public:
  explicit FakeUnderTest(std::uint64_t seed = 0) : machines_(seed), engine_(Make()) {
    engine_->Open("10.0.0.1:1", "");
  }

  std::unique_ptr<Engine> Make(LookTimes often = kOften) {
    auto directory = NodeDirectory::Open(folder_.File("nodes"));
    EXPECT_TRUE(directory.ok()) << directory.status();
    return std::make_unique<ReconcilingEngine>(machines_.Provider(), NodeAgents{"tuner", {}},
                                               *std::move(directory), kSoon, often);
  }
  // As kill -9 of the service does: the engine can say no more.
  void Crash() {
    machines_.SetReachable(false);
    engine_.reset();
    machines_.SetReachable(true);
  }
  void Restart(const std::string& address = "10.0.0.1:1", LookTimes often = kOften) {
    engine_ = Make(often);
    engine_->Open(address, "");
  }

  Engine& engine() override { return *engine_; }
  bool Await(const std::function<bool()>& condition) override { return AwaitProcesses(condition); }
  int Joined(const std::string& name) override { return machines_.Joined(name); }
  bool Here(const std::string& name) override { return machines_.Nodes().contains(name); }
  FakeMachines& machines() { return machines_; }
  const ScratchFolder& folder() const { return folder_; }

 private:
  ScratchFolder folder_;
  FakeMachines machines_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace espalier
