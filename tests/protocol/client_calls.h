#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace espalier {

// Calls a method of the service Tuner by its name with a request as it goes over the wire; the
// answer likewise.
absl::StatusOr<std::string> CallMethod(const std::string& address, const std::string& method,
                                       const std::string& request);

// Every method of the service but Agent.
std::vector<std::string> Methods();

}  // namespace espalier
