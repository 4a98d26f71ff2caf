#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "search_spaces/parameter.h"

namespace espalier::nni {

// What a front end says of a trial.
struct Submission {
  std::int64_t sequence = 0;
  std::string parameter;   // NNI's text
  std::string parameters;  // its "parameters" as a JSON object
  Parameters for_showing;  // the same, flat; what has no flat form is a text
};

absl::StatusOr<Submission> ReadSubmission(std::string_view body);

// The body of a further parameter: its text.
absl::StatusOr<std::string> ReadParameter(std::string_view body);

}  // namespace espalier::nni
