#pragma once

#include <string>
#include <string_view>

#include "tuner/api/tuner.h"
#include "tuner/core/state/study.h"

namespace espalier::nni {

// What a front end says of an experiment when it opens it.
struct Definition {
  StudySpec study;
  std::string checkpoint_directory;  // empty: the agents' own
  int gpus_per_trial = -1;           // -1: not told
  int slots_per_gpu = 0;             // 0: not told
  std::string canonical;             // the same for the same definition
};

// Reads the body of PUT /nni/v1/experiments/{experiment}; docs/nni_protocol.md has the keys.
absl::StatusOr<Definition> ReadDefinition(std::string_view experiment, std::string_view body);

// Whether the pool, as it is now, could ever run such a trial. One without any node may grow.
absl::Status CheckPool(const Definition& definition, const View& view);

// The keys whose values differ between two canonical definitions, for a message.
std::string DifferingKeys(std::string_view before, std::string_view now);

// The folder of a trial's checkpoints that a canonical definition asks for; empty: the agent's own.
std::string CheckpointFolder(std::string_view canonical, std::string_view trial);

}  // namespace espalier::nni
