#pragma once

#include <string>

#include "base/status.h"

namespace espalier {

// Whether a host, as text, is this machine alone: 127.0.0.0/8, ::1 or localhost.
bool NamesLoopback(const std::string& host);

// A socket that listens at an address of loopback, 127.0.0.1:PORT or [::1]:PORT, and does not
// block; port 0 takes any free one. The error names the address and the remedy.
absl::StatusOr<int> ListenOnLoopback(const std::string& address);

// At any free port of whichever loopback this machine has.
absl::StatusOr<int> ListenOnAnyLoopback();

}  // namespace espalier
