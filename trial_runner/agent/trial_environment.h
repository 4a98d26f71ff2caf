#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trial_runner/agent/agent.h"
#include "trial_runner/agent/host_address.h"
#include "trial_runner/agent/trial_proxy.h"
#include "tuner.pb.h"

namespace espalier {

// Where a trial's files lie on this machine: <directory>/<study>/trial-<number>/.
struct TrialFiles {
  std::string directory;
  std::string parameters;   // the flat JSON object
  std::string checkpoints;  // a folder
  std::string log;          // of one replica
  // of one replica, with the token that it shows to the service; empty: the agent's own is used
  std::string token;
};

// Makes the trial's folders and its parameter file.
absl::StatusOr<TrialFiles> MakeTrialFiles(const AgentOptions& options, const ServiceAccess& access,
                                          const v1::StartReplica& start);

// The command that the replica runs: base/json/command_words.h.
absl::StatusOr<std::vector<std::string>> TrialCommand(const v1::StartReplica& start,
                                                      const TrialFiles& files);

// Makes the path of the files with values, if there are such, an absolute one of this machine.
absl::StatusOr<v1::StartReplica> WithPathsOf(const TrialFiles& files, v1::StartReplica start);

// The replica's whole environment: `inherited`, then the study's, then ours. Fails if the
// parameters are not a JSON object. Pure.
absl::StatusOr<std::map<std::string, std::string>> TrialEnvironment(
    const std::map<std::string, std::string>& inherited, const AgentOptions& options,
    const ServiceAccess& access, std::int64_t node_id, const HostAddress& host,
    const v1::StartReplica& start, const TrialFiles& files);

// The GPU of a slot; nullptr: it is a CPU slot.
const Gpu* GpuOfSlot(const AgentOptions& options, int slot);

// Those of all slots that the process may use, each once, that of its own slot first.
std::vector<const Gpu*> GpusOf(const AgentOptions& options, const v1::StartReplica& start);

}  // namespace espalier
