#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace espalier {

// One message of a recorded conversation, as it went over the wire.
struct Said {
  std::string by;  // "agent", "service"; or of a client's call: "call METHOD", "answer METHOD"
  std::string bytes;

  friend bool operator==(const Said&, const Said&) = default;
};

// What was said, in the order in which a bystander heard it.
using Recording = std::vector<Said>;

absl::StatusOr<Recording> ReadRecording(const std::string& path);
absl::Status WriteRecording(const std::string& path, const Recording& recording);

}  // namespace espalier
