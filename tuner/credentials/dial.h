#pragma once

#include <chrono>
#include <string>

#include "base/status.h"

namespace espalier {

// How long a connection may take to be made, and how it can be given up.
struct DialLimit {
  std::chrono::steady_clock::time_point ends;
  int cancelled = -1;  // a descriptor that becomes readable when the caller gives up; -1: none

  static DialLimit Within(double timeout_s, int cancelled = -1);
  bool over() const { return std::chrono::steady_clock::now() >= ends; }
};

// Whether the socket is ready for such events of poll; false: it took too long, or was cancelled.
bool AwaitSocket(int socket, short events, const DialLimit& limit);

// A connected socket that does not block, to the first address of HOST:PORT that answers.
// UNAVAILABLE: no address answers.
absl::StatusOr<int> DialTcp(const std::string& address, const DialLimit& limit);

}  // namespace espalier
