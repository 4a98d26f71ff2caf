#pragma once

#include <string>

#include "tuner/base/status.h"

namespace espalier {

// Where a door listens: host:port, an IPv6 host in brackets.
struct ListenAddress {
  std::string host;
  int port = 0;  // 0: any free one

  bool loopback() const;
  std::string text() const;
};

absl::StatusOr<ListenAddress> ParseListenAddress(const std::string& text);

// OK if the address can be bound now. The error names the address, why not, and the remedy.
absl::Status CheckFree(const ListenAddress& address);

}  // namespace espalier
