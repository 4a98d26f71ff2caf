#pragma once

#include <string>
#include <string_view>

#include "base/host_port.h"
#include "base/status.h"

namespace espalier {

// Where an endpoint listens; port 0: any free one.
struct ListenAddress : HostPort {
  bool loopback() const;
};

absl::StatusOr<ListenAddress> ParseListenAddress(const std::string& text);

// Whether a Host header has an address or localhost, which no name server can have made up: pages
// of other sites reach a service under names of theirs.
bool IsAddressOrLocalhost(std::string_view host);

// Where other machines find what listens at `address`.
std::string NameFromElsewhere(const std::string& address);

// OK if the address can be bound now. The error names the address, why not, and the remedy.
absl::Status CheckFree(const ListenAddress& address);

}  // namespace espalier
