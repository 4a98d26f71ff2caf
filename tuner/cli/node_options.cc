#include "tuner/cli/node_options.h"

#include <fmt/format.h>

#include "tuner/cli/machine.h"

namespace espalier {
namespace {

constexpr int kMaxSlots = 4096;

}  // namespace

void NodeArguments::AddTo(CLI::App& app) {
  app.add_option("--slots", slots, "Slots of this machine (default: its GPUs, else CPU cores)");
  app.add_option("--replica-lease", replica_lease_s,
                 "Seconds without a word after which a replica is taken as hung and killed (a "
                 "debugger's breakpoint is such a silence); its group goes on without it; 0: never")
      ->capture_default_str();
}

absl::Status NodeArguments::Resolve(AgentOptions& options) const {
  if (slots == 0 || slots < -1 || slots > kMaxSlots) {
    return absl::InvalidArgumentError(fmt::format("--slots {}: must be 1 to {}", slots, kMaxSlots));
  }
  options.slots = slots == -1 ? DefaultSlots() : slots;
  if (replica_lease_s != 0 &&
      !(replica_lease_s >= kMinReplicaLease_s && replica_lease_s <= kMaxReplicaLease_s)) {
    return absl::InvalidArgumentError(
        fmt::format("--replica-lease {}: must be 0 (none) or {} to {} seconds", replica_lease_s,
                    kMinReplicaLease_s, kMaxReplicaLease_s));
  }
  options.replica_lease_s = replica_lease_s;
  return absl::OkStatus();
}

}  // namespace espalier
