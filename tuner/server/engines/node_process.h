#pragma once

#include <sys/types.h>

#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace espalier {

// One `tuner agent` of this machine, held by a descriptor, so that no other process that happens to
// get its number is ever taken for it. Its folder holds node.pid, from which a later owner that is
// not its parent finds it again, and agent.log. Letting go of it does not end it. One owner.
class NodeProcess {
 public:
  struct Plan {
    std::string executable;
    std::vector<std::string> arguments;
    std::string directory;    // of all nodes
    std::string checkpoints;  // folder that all nodes share
    std::string name;
    std::string grpc_address;
    std::string http_address;  // empty: none
  };

  // Starts the agent in a session of its own, with no descriptors but the standard ones.
  static absl::StatusOr<NodeProcess> Start(const Plan& plan);
  // The agents that live, by the folders in `directory`. The records of dead ones are removed.
  static std::vector<NodeProcess> Find(const std::string& directory);

  NodeProcess(NodeProcess&& other) noexcept;
  NodeProcess& operator=(NodeProcess&&) = delete;
  ~NodeProcess();

  const std::string& name() const { return name_; }
  const std::string& service_address() const { return service_address_; }
  pid_t pid() const { return pid_; }
  int descriptor() const { return descriptor_; }  // readable once it has ended

  void Signal(int signal) const;
  // Whether it has ended. Then it is gone from the process table, and its record from the folder.
  bool Ended() const;

 private:
  NodeProcess(std::string name, std::string service_address, std::string pid_file, pid_t pid,
              int descriptor)
      : name_(std::move(name)),
        service_address_(std::move(service_address)),
        pid_file_(std::move(pid_file)),
        pid_(pid),
        descriptor_(descriptor) {}

  std::string name_;
  std::string service_address_;
  std::string pid_file_;
  pid_t pid_;
  int descriptor_;
};

}  // namespace espalier
