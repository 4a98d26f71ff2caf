#include "tuner/cli/node_options.h"

#include <fmt/format.h>

#include <cstdint>
#include <map>

#include "absl/strings/numbers.h"
#include "tuner/cli/machine.h"

namespace espalier {
namespace {

constexpr int kMaxSlots = 4096;
constexpr std::int64_t kSpareShare = 8;

}  // namespace

void NodeArguments::AddTo(CLI::App& app) {
  app.add_option("--slots", slots, "Slots of this machine (default: its GPUs, else CPU cores)");
  app.add_option("--replica-lease", replica_lease_s,
                 "Seconds without a word after which a replica is taken as hung and killed (a "
                 "debugger's breakpoint is such a silence); its group goes on without it; 0: never")
      ->capture_default_str();
  app.add_option("--spare-memory", spare_memory,
                 "Memory for elastic replicas that have left their group and are kept loaded for "
                 "the next time their trial grows, like 2G; 0: none are kept (default: an eighth "
                 "of the machine's)");
}

absl::StatusOr<std::int64_t> ParseBytes(const std::string& text) {
  constexpr std::int64_t kMost = std::int64_t{1} << 50;
  static const std::map<std::string, std::int64_t> kUnits = {
      {"", 1}, {"K", 1LL << 10}, {"M", 1LL << 20}, {"G", 1LL << 30}, {"T", 1LL << 40}};
  const std::size_t digits = text.find_first_not_of("0123456789");
  const std::string number = text.substr(0, digits);
  const auto unit = kUnits.find(digits == std::string::npos ? "" : text.substr(digits));
  std::int64_t value = 0;
  if (unit == kUnits.end() || !absl::SimpleAtoi(number, &value) || value > kMost / unit->second) {
    return absl::InvalidArgumentError(
        fmt::format("\"{}\": must be a number of bytes, or one with K, M, G or T, like 2G", text));
  }
  return value * unit->second;
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
  options.spare_memory_bytes = MemoryBytes() / kSpareShare;
  if (!spare_memory.empty()) {
    const absl::StatusOr<std::int64_t> bytes = ParseBytes(spare_memory);
    if (!bytes.ok()) {
      return absl::InvalidArgumentError(
          fmt::format("--spare-memory {}", std::string(bytes.status().message())));
    }
    options.spare_memory_bytes = *bytes;
  }
  return absl::OkStatus();
}

}  // namespace espalier
