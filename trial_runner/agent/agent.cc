#include "trial_runner/agent/agent.h"

#include <sys/eventfd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "trial_runner/agent/agent_loop.h"

namespace espalier {

absl::StatusOr<std::unique_ptr<Agent>> Agent::Start(const AgentOptions& options) {
  if (options.slots < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("agent: slots should be at least 1, got ", options.slots));
  }
  if (options.node_name.empty()) return absl::InvalidArgumentError("agent: node name is empty");
  if (options.service_address.empty()) {
    return absl::InvalidArgumentError("agent: service address is empty; HOST:PORT is needed");
  }
  const double lease_s = options.replica_lease_s;
  if (lease_s != 0 && !(lease_s >= kMinReplicaLease_s && lease_s <= kMaxReplicaLease_s)) {
    return absl::InvalidArgumentError(absl::StrCat("agent: replica lease should be 0 (none) or ",
                                                   kMinReplicaLease_s, " to ", kMaxReplicaLease_s,
                                                   " seconds, got ", lease_s));
  }
  const int shares = static_cast<int>(options.gpus.size()) * options.slots_per_gpu;
  if (!options.gpus.empty() && (options.slots_per_gpu < 1 || options.slots != shares)) {
    return absl::InvalidArgumentError(
        absl::StrCat("agent: slots should be GPUs times slots per GPU, ", options.gpus.size(),
                     " times ", options.slots_per_gpu, ", got ", options.slots));
  }
  // Replicas run in other directories, so what they are told must not be relative to this one.
  AgentOptions absolute = options;
  std::error_code error;
  absolute.directory = std::filesystem::absolute(options.directory, error).string();
  if (!error) std::filesystem::create_directories(absolute.directory, error);
  if (error) {
    return absl::FailedPreconditionError(absl::StrCat("agent: cannot create directory \"",
                                                      options.directory, "\": ", error.message()));
  }
  if (options.tuner_executable.find('/') != std::string::npos) {
    absolute.tuner_executable = std::filesystem::absolute(options.tuner_executable).string();
  }
  // Trials append paths to it, so it is a URL for them whichever way it was given.
  if (!options.http_address.empty() && options.http_address.find("://") == std::string::npos) {
    absolute.http_address = "http://" + options.http_address;
  }
  FileDescriptor wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.open()) {
    return absl::InternalError(absl::StrCat("agent: eventfd: ", strerror(errno)));
  }
  return std::make_unique<AgentLoop>(std::move(absolute), std::move(wake));
}

}  // namespace espalier
