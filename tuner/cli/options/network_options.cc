#include "tuner/cli/options/network_options.h"

#include <fmt/format.h>

#include "trial_runner/agent/host_address.h"
#include "tuner/cli/options/command.h"

namespace espalier {

void NetworkArguments::AddTo(CliCommand& command) {
  command.AddOption(
      "--address", address,
      "Address at which other machines reach this machine's replicas (default: the one "
      "from which it reaches the service)");
  command.AddOption("--interface", interface,
                    "Network interface that has this address, instead of --address");
  command.AddOption(
      "--port-range", port_range,
      fmt::format("TCP ports on which replicas listen, LOW-HIGH; open them to the pool's other "
                  "machines. At least {} per slot, and one more (default: any)",
                  kPortsPerSlot));
}

absl::Status NetworkArguments::Resolve(AgentOptions& options) const {
  if (!address.empty() && !interface.empty()) {
    return absl::InvalidArgumentError(fmt::format(
        "--address {} and --interface {}: leave one of the two out", address, interface));
  }
  if (!address.empty()) ESPALIER_RETURN_IF_ERROR(FindOwnAddress(address).status());
  if (!interface.empty()) {
    ESPALIER_RETURN_IF_ERROR(AddressOfInterface(interface, /*prefer_ipv6=*/false).status());
  }
  options.host_address = address;
  options.interface = interface;
  if (port_range.empty()) return absl::OkStatus();
  const absl::StatusOr<PortRange> ports = ParsePortRange(port_range);
  if (!ports.ok()) {
    return absl::InvalidArgumentError(
        fmt::format("--port-range: {}", std::string(ports.status().message())));
  }
  // And one at which other agents fetch checkpoints.
  if (const int needed = kPortsPerSlot * options.slots + 1; ports->size() < needed) {
    return absl::InvalidArgumentError(fmt::format(
        "--port-range {}: has {} ports, and {} slots need {} ({} each, and one for checkpoints)",
        port_range, ports->size(), options.slots, needed, kPortsPerSlot));
  }
  options.ports = *ports;
  return absl::OkStatus();
}

}  // namespace espalier
