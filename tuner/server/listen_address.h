#pragma once

#include <string>
#include <string_view>

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

// Whether a Host header has an address or localhost, which no name server can have made up: pages
// of other sites reach a service under names of theirs.
bool IsAddressOrLocalhost(std::string_view host);

// OK if the address can be bound now. The error names the address, why not, and the remedy.
absl::Status CheckFree(const ListenAddress& address);

}  // namespace espalier
