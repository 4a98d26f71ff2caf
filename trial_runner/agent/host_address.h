#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "trial_runner/agent/agent.h"

namespace espalier {

// An address of this machine at which other machines' replicas may reach those that run here.
struct HostAddress {
  std::string address = "127.0.0.1";  // without brackets
  std::string interface = "lo";       // that holds it

  bool loopback() const;
  friend bool operator==(const HostAddress&, const HostAddress&) = default;
};

// The addresses of the interfaces that are up. Those that are valid on one link only (fe80::) are
// left out, because they mean nothing to another machine.
std::vector<HostAddress> OwnAddresses();

// The address that `tuner agent --address` names. The error lists those that this machine has.
absl::StatusOr<HostAddress> FindOwnAddress(const std::string& address);
// The first address of the interface that `tuner agent --interface` names, of the preferred family
// if it has one.
absl::StatusOr<HostAddress> AddressOfInterface(const std::string& interface, bool prefer_ipv6);

// The address from which this machine reaches `peer`, as gRPC writes the other end of a connection
// ("ipv4:10.0.0.1:7077"). 127.0.0.1 if that is within the machine. Sends nothing.
absl::StatusOr<HostAddress> AddressTowards(const std::string& peer);

// The address that the options name, else the one from which the service is reached.
absl::StatusOr<HostAddress> ChooseHostAddress(const AgentOptions& options,
                                              const std::string& service_peer);

}  // namespace espalier
