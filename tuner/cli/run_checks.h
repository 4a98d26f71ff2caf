#pragma once

#include <string>

#include "base/status.h"
#include "tuner/cli/run_session.h"
#include "tuner/core/state/study.h"

namespace espalier {

// A `tuner run` that has been found to make sense.
struct RunPlan {
  RunArguments arguments;
  StudySpec spec;
  AgentOptions agent;     // slots and what replicas are given
  std::string directory;  // absolute; exists
  std::string token;
};

// Whether machines other than this one reach what listens there; an empty text is nowhere.
bool OthersReach(const std::string& address);

// Checks all that can be checked before anything starts; with --fresh moves an earlier run aside.
// An error names the thing, its value and the remedy.
absl::StatusOr<RunPlan> CheckRun(const RunArguments& arguments);

// The error, or where it came because another `tuner run` is at work in the directory, that this is
// so and what to do.
absl::Status OrInUse(const absl::Status& error, const std::string& directory,
                     const std::string& study);

}  // namespace espalier
