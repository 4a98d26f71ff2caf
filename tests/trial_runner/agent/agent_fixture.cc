#include "tests/trial_runner/agent/agent_fixture.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "base/file_descriptor.h"
#include "trial_runner/agent/processes/frames.h"

namespace espalier {

AgentTest::AgentTest() {
  std::string name = (std::filesystem::temp_directory_path() / "agent-XXXXXX").string();
  folder_ = mkdtemp(name.data());
}

AgentTest::~AgentTest() {
  service_.Close();  // first: an agent that leaves waits a while for acknowledgements
  agent_.reset();
  std::filesystem::remove_all(folder_);
}

AgentOptions AgentTest::Options() {
  AgentOptions options;
  options.service_address = service_.address();
  options.http_address = "127.0.0.1:1";
  options.node_name = "node-a";
  options.slots = 4;
  options.replica_lease_s = replica_lease_s_;
  options.spare_memory_bytes = spare_memory_bytes_;
  options.directory = Path("agent");
  options.token = "secret";
  options.dial = service_.Dial(options.token);
#ifdef ESPALIER_CALLS_IN_PROCESS
  options.keep_checkpoints = false;  // others fetch them by gRPC
#endif
  options.tuner_executable = "/opt/espalier/bin/tuner";
  return options;
}

void AgentTest::StartAgent() {
  auto agent = Agent::Start(Options());
  ASSERT_TRUE(agent.ok()) << agent.status();
  agent_ = *std::move(agent);
  ASSERT_TRUE(agent_->WaitConnected(60));
}

void AgentTest::WriteFile(const std::string& name, const std::string& content) const {
  // At once: agent, scripts and drivers look at it when they like.
  std::ofstream(Path(name + ".part"), std::ios::binary) << content;
  std::filesystem::rename(Path(name + ".part"), Path(name));
}

std::string AgentTest::ReadFile(const std::string& name) const {
  std::ifstream file(Path(name), std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

void AgentTest::WriteFrame(const std::string& name, const v1::ReplicaMessage& message) const {
  WriteFile(name, Frame(message.SerializeAsString()));
}

v1::StartReplica AgentTest::Shell(std::int64_t replica_id, const std::string& script) const {
  v1::StartReplica start;
  start.set_replica_id(replica_id);
  start.set_trial_id(30 + replica_id);
  start.set_trial_number(2);
  start.set_slot(1);
  start.set_study("mnist");
  start.set_directory(folder_.string());
  start.set_parameters_json(R"({"lr":0.1,"rule":"adascale"})");
  start.add_command("/bin/sh");
  start.add_command("-c");
  start.add_command(script);
  return start;
}

bool AgentTest::AwaitMessage(std::int64_t replica_id) {
  return service_.Await([&](const ScriptedService::Events& events) {
    for (const v1::AgentMessage& event : events) {
      if (event.has_from_replica() && event.from_replica().replica_id() == replica_id) return true;
    }
    return false;
  });
}

int AgentTest::AwaitPid(std::int64_t replica_id) {
  int pid = 0;
  service_.Await([&](const ScriptedService::Events& events) {
    for (const v1::AgentMessage& event : events) {
      if (event.has_started() && event.started().replica_id() == replica_id) {
        pid = event.started().pid();
      }
    }
    return pid != 0;
  });
  return pid;
}

bool AwaitProcessEnd(int pid) {
  const FileDescriptor pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd.open()) return true;
  pollfd ended{pidfd.get(), POLLIN, 0};
  return poll(&ended, 1, 60'000) == 1;
}

}  // namespace espalier
