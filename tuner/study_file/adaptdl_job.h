#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace espalier {

struct AdaptDLJob {
  std::string study_json;  // a study of one trial, for ParseStudy
  // What the file asks of Kubernetes, by path, and a pool has no use for.
  std::vector<std::string> unused;
};

// A job of AdaptDL's for Kubernetes (apiVersion adaptdl.petuum.com/v1, kind AdaptDLJob) as an
// elastic trial without parameters: its container's command, environment and folder, and as many
// slots as replicas. `yaml` may be JSON too. Errors begin with `label` and name the field.
absl::StatusOr<AdaptDLJob> ReadAdaptDLJob(std::string_view yaml, const std::string& label);

}  // namespace espalier
