#include "trial_runner/agent/agent.h"

#include <sys/eventfd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/host_port.h"
#include "base/machine_limits.h"
#include "base/private_files.h"
#include "trial_runner/agent/agent_home.h"
#include "trial_runner/agent/agent_loop.h"
#include "trial_runner/agent/checkpoints/checkpoint_store.h"
#include "trial_runner/agent/handover.h"
#include "tuner/credentials/access_token.h"
#include "tuner/forwarding/loopback_listener.h"

namespace espalier {
namespace {

absl::Status Check(const AgentOptions& options) {
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
  return absl::OkStatus();
}

// Whether the service's HTTP endpoint does, where its address does not say so: with a certificate
// that the service was given all its proxy do, with its own those that other machines reach.
bool SpeaksTls(const AgentOptions& options) {
  if (!options.tls_roots.empty()) return true;
  const absl::StatusOr<HostPort> where = ParseHostPort(options.http_address);
  return !PinOf(options.token).empty() && where.ok() && !NamesLoopback(where->host);
}

absl::StatusOr<AgentOptions> Complete(const AgentOptions& options) {
  ESPALIER_RETURN_IF_ERROR(Check(options));
  // Replicas run in other directories, so what they are told must not be relative to this one.
  AgentOptions absolute = options;
  if (absolute.cores == 0) absolute.cores = UsableCores();
  std::error_code error;
  absolute.directory = std::filesystem::absolute(options.directory, error).string();
  if (error) {
    return absl::FailedPreconditionError(
        absl::StrCat("agent: directory \"", options.directory, "\": ", error.message()));
  }
  ESPALIER_RETURN_IF_ERROR(MakePrivateFolders(absolute.directory));
  if (!options.shared_directory.empty()) {
    absolute.shared_directory = std::filesystem::absolute(options.shared_directory, error).string();
  }
  if (options.tuner_executable.find('/') != std::string::npos) {
    absolute.tuner_executable = std::filesystem::absolute(options.tuner_executable).string();
  }
  // Trials append paths to it, so it is a URL for them whichever way it was given.
  if (!options.http_address.empty() && options.http_address.find("://") == std::string::npos) {
    absolute.http_address = (SpeaksTls(options) ? "https://" : "http://") + options.http_address;
  }
  return absolute;
}

absl::StatusOr<v1::AgentHandover> HandedTo(const AgentOptions& options) {
  ESPALIER_ASSIGN_OR_RETURN(v1::AgentHandover handover, ReadHandover(options.take_over));
  for (const auto* replicas : {&handover.running(), &handover.spares()}) {
    for (const v1::HandedReplica& replica : *replicas) {
      if (replica.protocol().empty()) continue;
      ESPALIER_RETURN_IF_ERROR(
          CheckReplicaProtocol(replica.identity().replica_id(), replica.protocol()));
    }
  }
  if (handover.node_name() == options.node_name && handover.directory() == options.directory) {
    return handover;
  }
  return absl::FailedPreconditionError(
      absl::StrCat("agent: the running agent is \"", handover.node_name(), "\" in ",
                   handover.directory(), ", its successor would be \"", options.node_name, "\" in ",
                   options.directory, ": both must be the same"));
}

absl::StatusOr<std::unique_ptr<AgentLoop>> MakeLoop(const AgentOptions& options) {
  ESPALIER_ASSIGN_OR_RETURN(AgentOptions complete, Complete(options));
  std::string folder_mark;
  if (!complete.shared_directory.empty()) {
    ESPALIER_ASSIGN_OR_RETURN(folder_mark, MarkOfSharedFolder(complete.shared_directory));
  }
  FileDescriptor wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.open()) {
    return absl::InternalError(absl::StrCat("agent: eventfd: ", strerror(errno)));
  }
  if (complete.take_over.empty()) {
    ESPALIER_ASSIGN_OR_RETURN(AgentHome home,
                              AgentHome::Take(complete.directory, complete.node_name));
    ESPALIER_ASSIGN_OR_RETURN(TrialProxy proxy, TrialProxy::Open(complete, nullptr));
    ESPALIER_ASSIGN_OR_RETURN(std::string mark, home.Begin());
    return std::make_unique<AgentLoop>(std::move(complete), std::move(home), std::move(proxy),
                                       std::move(mark), std::move(folder_mark), std::move(wake));
  }
  ESPALIER_ASSIGN_OR_RETURN(const v1::AgentHandover handover, HandedTo(complete));
  CloseOnExec(handover);
  AgentHome home = AgentHome::TakeOver(complete.directory, complete.node_name, handover.lock());
  ESPALIER_ASSIGN_OR_RETURN(TrialProxy proxy, TrialProxy::Open(complete, &handover));
  auto loop = std::make_unique<AgentLoop>(std::move(complete), std::move(home), std::move(proxy),
                                          handover.mark(), std::move(folder_mark), std::move(wake));
  loop->TakeOver(handover);
  ForgetHandover(options.take_over);
  return loop;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Agent>> Agent::Start(const AgentOptions& options) {
  ESPALIER_ASSIGN_OR_RETURN(std::unique_ptr<AgentLoop> loop, MakeLoop(options));
  loop->RunOnOwnThread();
  return loop;
}

absl::StatusOr<std::unique_ptr<Agent>> Agent::Make(const AgentOptions& options) {
  return MakeLoop(options);
}

absl::Status Agent::CheckTakeOver(const AgentOptions& options) {
  ESPALIER_ASSIGN_OR_RETURN(const AgentOptions complete, Complete(options));
  return HandedTo(complete).status();
}

}  // namespace espalier
