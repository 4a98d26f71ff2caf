#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace espalier {

// TCP ports that may be listened at, both ends included. By default any that the system gives.
struct PortRange {
  int low = 0;
  int high = 0;

  bool any() const { return low == 0; }
  int size() const { return any() ? 0 : high - low + 1; }
  std::string text() const;

  friend bool operator==(const PortRange&, const PortRange&) = default;
};

// "7100-7163". The error quotes the text and says what would be right.
absl::StatusOr<PortRange> ParsePortRange(const std::string& text);

}  // namespace espalier
