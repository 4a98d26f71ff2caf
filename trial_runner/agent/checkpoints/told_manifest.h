#pragma once

#include <string>

#include "base/status.h"
#include "transfer.pb.h"
#include "trial_runner/agent/checkpoints/checkpoint_manifest.h"

namespace espalier {

// The manifest that another agent tells of a checkpoint: of the file `name`, or of a whole folder
// where that is empty. DATA_LOSS: it is none, names a file twice, or would lead out of the folder.
absl::StatusOr<CheckpointManifest> ManifestOf(const v1::CheckpointManifest& told,
                                              const std::string& name);

}  // namespace espalier
