#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "trial_runner/agent/agent.h"
#include "tuner.pb.h"

namespace espalier {

// Where a trial's files lie on this machine: <directory>/<study>/trial-<number>/.
struct TrialFiles {
  std::string directory;
  std::string parameters;   // the flat JSON object
  std::string checkpoints;  // a folder
  std::string log;          // of one replica
};

// A study's name as a folder's: '/', '%' and a leading dot are written as %XX. Pure.
std::string FolderName(const std::string& study);

// <directory>/<study>/trial-<number>. Pure.
std::string TrialFolder(const std::string& directory, const std::string& study,
                        std::int64_t number);

// Makes the trial's folders and its parameter file.
absl::StatusOr<TrialFiles> MakeTrialFiles(const AgentOptions& options,
                                          const v1::StartReplica& start);

// "learning rate" -> ESPALIER_PARAM_LEARNING_RATE. Pure.
std::string ParameterVariable(const std::string& name);

// The replica's whole environment: `inherited`, then the study's, then ours. Fails if the
// parameters are not a JSON object. Pure but for the number of cores.
absl::StatusOr<std::map<std::string, std::string>> TrialEnvironment(
    const std::map<std::string, std::string>& inherited, const AgentOptions& options,
    std::int64_t node_id, const v1::StartReplica& start, const TrialFiles& files);

// This process's environment.
std::map<std::string, std::string> OwnEnvironment();

// The GPU of a slot; nullptr: it is a CPU slot.
const Gpu* GpuOfSlot(const AgentOptions& options, int slot);

}  // namespace espalier
