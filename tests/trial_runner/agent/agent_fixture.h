#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "tests/trial_runner/agent/scripted_service.h"
#include "trial_runner/agent/agent.h"

namespace espalier {

// An agent of four slots, the service it dials, and a folder for scripts and the agent's files.
class AgentTest : public ::testing::Test {
 protected:
  AgentTest();
  ~AgentTest() override;

  AgentOptions Options();
  void StartAgent();

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  void WriteFile(const std::string& name, const std::string& content) const;
  std::string ReadFile(const std::string& name) const;
  // A file with the frame of a message, for scripts to copy to their control socket.
  void WriteFrame(const std::string& name, const v1::ReplicaMessage& message) const;

  // A replica of trial 30 + id, number 2 of study "mnist", that runs a shell script.
  v1::StartReplica Shell(std::int64_t replica_id, const std::string& script) const;
  // Waits until the replica has sent a message over its control socket.
  bool AwaitMessage(std::int64_t replica_id);
  int AwaitPid(std::int64_t replica_id);

  // What StartAgent gives the agent as its options.
  double replica_lease_s_ = 0;
  std::int64_t spare_memory_bytes_ = 0;
  std::filesystem::path folder_;
  ScriptedService service_;
  std::unique_ptr<Agent> agent_;
};

// Waits until no such process runs any more; false: it still did after a minute.
bool AwaitProcessEnd(int pid);

}  // namespace espalier
