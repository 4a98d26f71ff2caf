#include "tuner/cli/options/node_options.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "base/machine_limits.h"
#include "base/open_files.h"
#include "tuner/cli/machine/machine.h"
#include "tuner/cli/options/command.h"
#include "tuner/cli/views/text.h"

namespace espalier {
namespace {

constexpr int kMaxSlotsPerGpu = 64;

// Finds the GPUs and makes slots of them, unless there are none or none are wanted.
absl::Status ResolveGpus(const NodeArguments& arguments, AgentOptions& options) {
  const bool shares = arguments.slots_per_gpu.has_value();
  const int slots_per_gpu = arguments.slots_per_gpu.value_or(1);
  if (slots_per_gpu < 1 || slots_per_gpu > kMaxSlotsPerGpu) {
    return absl::InvalidArgumentError(
        fmt::format("--slots-per-gpu {}: must be 1 to {}", slots_per_gpu, kMaxSlotsPerGpu));
  }
  const bool wanted = arguments.gpus.empty() ? !arguments.slots : arguments.gpus != "none";
  if (arguments.slots && (wanted || shares)) {
    return absl::InvalidArgumentError(fmt::format(
        "--slots {}: GPUs make as many slots as they have (--slots-per-gpu each); leave "
        "one of the two out",
        *arguments.slots));
  }
  const absl::StatusOr<std::vector<Gpu>> found = FindGpus();
  if (!wanted) {
    options.hide_gpus = found.ok() && !found->empty();
    return absl::OkStatus();
  }
  ESPALIER_RETURN_IF_ERROR(found.status());
  options.hide_gpus = !found->empty();
  std::vector<Gpu> candidates = *found;
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (arguments.gpus.empty() && visible != nullptr) candidates = VisibleGpus(*found, visible);
  absl::StatusOr<std::vector<Gpu>> chosen =
      ChooseGpus(candidates, arguments.gpus.empty() ? "all" : arguments.gpus);
  if (!chosen.ok()) {
    return absl::InvalidArgumentError(
        fmt::format("--gpus {}: {}", arguments.gpus, std::string(chosen.status().message())));
  }
  if (chosen->empty() && (!arguments.gpus.empty() || shares)) {
    return absl::InvalidArgumentError(fmt::format(
        "{}: this machine has no GPU that works",
        shares ? fmt::format("--slots-per-gpu {}", slots_per_gpu) : "--gpus " + arguments.gpus));
  }
  options.gpus = *std::move(chosen);
  options.slots_per_gpu = slots_per_gpu;
  options.slots = static_cast<int>(options.gpus.size()) * options.slots_per_gpu;
  return absl::OkStatus();
}

// Machines with the same mixture of GPUs are alike.
std::string TypeOf(const std::vector<Gpu>& gpus) {
  std::set<std::string> names;
  for (const Gpu& gpu : gpus) names.insert(gpu.name);
  return absl::StrJoin(names, " + ");
}

// An agent holds two open files for each replica: a descriptor of its process, and the socket by
// which it speaks with it.
constexpr int kFilesPerSlot = 2;
constexpr int kOtherFiles = 64;  // of its own, and those that it needs while it starts a replica

// `slots` as the message names them.
absl::Status CheckOpenFiles(int count, const std::string& slots) {
  const rlim_t limit = LimitOfOpenFiles();
  const auto needed = static_cast<rlim_t>(count) * kFilesPerSlot + kOtherFiles;
  if (needed <= limit) return absl::OkStatus();
  const rlim_t fitting = limit < kOtherFiles ? 0 : (limit - kOtherFiles) / kFilesPerSlot;
  return absl::InvalidArgumentError(fmt::format(
      "{}: needs {} open files, and this process may have {}: {}raise the hard limit "
      "(ulimit -Hn, LimitNOFILE=)",
      slots, needed, limit,
      fitting > 0
          ? fmt::format("offer {} or fewer, or ", Count(static_cast<std::int64_t>(fitting), "slot"))
          : ""));
}

}  // namespace

void NodeArguments::AddTo(CliCommand& command) {
  command.AddOption(
      "--slots", slots,
      "Number of CPU slots (default: the GPUs are the slots; without GPUs, one slot per CPU core)");
  command.AddOption("--gpus", gpus,
                    "GPUs to offer as slots: all, none, or indices such as 0,2 (default: all that "
                    "CUDA_VISIBLE_DEVICES allows, unless --slots is given)");
  command.AddOption("--slots-per-gpu", slots_per_gpu,
                    "Slots per GPU, which share its memory evenly (default: 1)");
  command.AddOption(
      "--gpu-type", gpu_type,
      "Type of the slots; a trial only holds slots of one type (default: the driver's "
      "name for the GPUs; none for CPU slots)");
  command.AddOption("--price-per-hour", price_per_hour,
                    "Price of this machine per hour, in any currency (default: unknown)");
  command
      .AddOption("--replica-lease", replica_lease_s,
                 "Seconds without a heartbeat after which a replica counts as hung and is killed, "
                 "even one stopped in a debugger; its group goes on without it; 0: never")
      .ShowDefault();
  command.AddOption(
      "--spare-memory", spare_memory,
      "Memory for spares, such as 2G: elastic replicas that have left their group and "
      "stay loaded for the next time their trial grows; 0: no spares (default: an "
      "eighth of the machine's memory)");
  command.AddOption("--max-log", max_log,
                    "Size at which a replica's log loses its middle, such as 1G; its beginning and "
                    "its newest half stay; 0: never (default: 64M)");
  command.AddOption("--disk-reserve", disk_reserve,
                    "Nothing is started while the disk of --dir has less room than this; 0: no "
                    "reserve (default: 256M)");
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

namespace {

// What an option says, if it is given.
absl::Status SetBytes(const char* option, const std::string& text, std::int64_t& bytes) {
  if (text.empty()) return absl::OkStatus();
  const absl::StatusOr<std::int64_t> given = ParseBytes(text);
  if (!given.ok()) {
    return absl::InvalidArgumentError(
        fmt::format("{} {}", option, std::string(given.status().message())));
  }
  bytes = *given;
  return absl::OkStatus();
}

}  // namespace

absl::Status NodeArguments::Resolve(AgentOptions& options) const {
  if (slots && (*slots < 1 || *slots > kMaxNodeSlots)) {
    return absl::InvalidArgumentError(
        fmt::format("--slots {}: must be 1 to {}", *slots, kMaxNodeSlots));
  }
  ESPALIER_RETURN_IF_ERROR(ResolveGpus(*this, options));
  if (options.gpus.empty()) options.slots = slots ? *slots : UsableCores();
  ESPALIER_RETURN_IF_ERROR(CheckOpenFiles(
      options.slots, slots ? fmt::format("--slots {}", *slots) : Count(options.slots, "slot")));
  options.gpu_type = gpu_type.empty() ? TypeOf(options.gpus) : gpu_type;
  if (!(price_per_hour >= 0) || !std::isfinite(price_per_hour)) {
    return absl::InvalidArgumentError(
        fmt::format("--price-per-hour {}: must be 0 (unknown) or more", price_per_hour));
  }
  options.price_per_hour = price_per_hour;
  if (replica_lease_s != 0 &&
      !(replica_lease_s >= kMinReplicaLease_s && replica_lease_s <= kMaxReplicaLease_s)) {
    return absl::InvalidArgumentError(
        fmt::format("--replica-lease {}: must be 0 (none) or {} to {} seconds", replica_lease_s,
                    kMinReplicaLease_s, kMaxReplicaLease_s));
  }
  options.replica_lease_s = replica_lease_s;
  options.spare_memory_bytes = SpareMemoryBytes();
  ESPALIER_RETURN_IF_ERROR(SetBytes("--spare-memory", spare_memory, options.spare_memory_bytes));
  ESPALIER_RETURN_IF_ERROR(SetBytes("--max-log", max_log, options.max_log_bytes));
  if (options.max_log_bytes != 0 && options.max_log_bytes < kMinMaxLog_bytes) {
    return absl::InvalidArgumentError(
        fmt::format("--max-log {}: must be 0 (no limit) or 4M at least", max_log));
  }
  return SetBytes("--disk-reserve", disk_reserve, options.disk_reserve_bytes);
}

}  // namespace espalier
