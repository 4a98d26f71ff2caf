#pragma once

#include <string>

#include "base/status.h"
#include "tuner.pb.h"
#include "tuner/core/state/study.h"

namespace espalier {

// Where the service of a run, which has these studies, does not know the study that `spec` is to be
// like: takes the trials from the record of the run of that name (local_runs.h), if there is one.
absl::Status TakeTrialsOfRun(const v1::ListStudiesResponse& known, const std::string& label,
                             StudySpec& spec);

}  // namespace espalier
