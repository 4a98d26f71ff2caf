#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace espalier {

// Where something listens: "10.0.0.1:7077", "oak:7077", "[::1]:7077". The host is without brackets.
struct HostPort {
  std::string host;
  int port = 0;

  std::string text() const;
};

// The error quotes the text.
absl::StatusOr<HostPort> ParseHostPort(const std::string& text);

}  // namespace espalier
