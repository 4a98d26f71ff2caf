#include "trial_runner/torch/engine/first_values.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/random.h"
#include "base/status.h"
#include "trial_runner/kernels/bit_hash.h"
#include "trial_runner/torch/engine/replica_check.h"

namespace espalier {
namespace {

using ByRank = std::vector<std::vector<std::int64_t>>;

// By which sums may differ where replicas round differently, in lengths of the tensor. Those of
// values that were drawn by other seeds are about a length apart.
constexpr double kMostApart = 1e-3;

constexpr char kWant[] =
    "Replicas begin alike, since all but replica 0 would lose what is their own. Likely reasons: a "
    "seed by the rank, the time or the process (torch.manual_seed), or values drawn by random or "
    "numpy.random, which are each process's own. Want no seed, which the trial has set alike for "
    "torch, or one by trial.seed. ESPALIER_CHECK_REPLICAS=off goes on from what replica 0 has";

// What a member says before values are looked at one by one.
enum Said : std::size_t { kRunning, kMode, kMachine, kOnHost, kNames, kValues };

bool AllHave(const ByRank& all, std::size_t number) {
  return std::ranges::all_of(all, [&](const auto& of) { return of[number] == all[0][number]; });
}

bool AnyHas(const ByRank& all, std::size_t number, std::int64_t value) {
  return std::ranges::any_of(all, [&](const auto& of) { return of[number] == value; });
}

std::vector<std::int64_t> Hashes(const std::vector<NamedTensor>& values) {
  std::vector<std::int64_t> hashes;
  for (const NamedTensor& value : values) {
    hashes.push_back(std::bit_cast<std::int64_t>(ReplicaCheck::OfTensor(value.tensor)));
  }
  return hashes;
}

std::uint64_t Together(const std::vector<std::int64_t>& numbers) {
  return HashBits(numbers.data(), numbers.size() * sizeof(std::int64_t));
}

std::vector<std::int64_t> Summary(const std::vector<NamedTensor>& values,
                                  const std::vector<std::int64_t>& hashes, bool running) {
  std::string names;
  bool on_host = true;
  for (const auto& [name, tensor] : values) {
    absl::StrAppend(&names, name, ": ", absl::StrJoin(tensor.sizes(), " "), "\n");
    on_host = on_host && tensor.is_cpu();
  }
  const ReplicaCheck::Mode mode = ReplicaCheck::ModeOfEnvironment();
  return std::vector<std::int64_t>{
      running ? 1 : 0,
      static_cast<std::int64_t>(mode),
      std::bit_cast<std::int64_t>(ReplicaCheck::OfMachine()),
      on_host ? 1 : 0,
      std::bit_cast<std::int64_t>(HashBits(names.data(), names.size())),
      std::bit_cast<std::int64_t>(Together(hashes))};
}

// A tensor's length, and a sum of its elements with signs that have nothing to do with them: what
// is left of a difference that is no rounding.
std::vector<std::int64_t> LengthsAndSums(const std::vector<NamedTensor>& values) {
  std::vector<std::int64_t> numbers;
  for (const NamedTensor& value : values) {
    const at::Tensor flat = value.tensor.detach().reshape(-1).to(at::kDouble);
    const at::Tensor places = at::arange(flat.numel(), at::TensorOptions(at::kLong));
    const at::Tensor odd =
        places.mul(static_cast<std::int64_t>(kPlaceFactor)).bitwise_and(1 << 20).ne(0);
    const at::Tensor signs = odd.to(at::kDouble).mul(2).sub(1);
    for (const at::Tensor& number : {flat.norm(), flat.mul(signs).sum()}) {
      numbers.push_back(std::bit_cast<std::int64_t>(number.item<double>()));
    }
  }
  return numbers;
}

// A rank that has another value; none: all have the same.
std::optional<std::size_t> Other(const ByRank& hashes, std::size_t value) {
  if (AllHave(hashes, value)) return std::nullopt;
  return OddOneOut(hashes, value);
}

std::optional<std::size_t> Apart(const ByRank& lengths_and_sums, std::size_t value) {
  const auto number = [&](std::size_t rank, std::size_t which) {
    return std::bit_cast<double>(lengths_and_sums[rank][2 * value + which]);
  };
  const double most = kMostApart * number(0, 0);
  for (std::size_t rank = 1; rank < lengths_and_sums.size(); ++rank) {
    for (std::size_t which = 0; which < 2; ++which) {
      if (std::abs(number(rank, which) - number(0, which)) > most) return rank;
    }
  }
  return std::nullopt;
}

absl::Status Refusal(const std::vector<NamedTensor>& values, const std::vector<std::size_t>& unlike,
                     std::size_t rank) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < unlike.size() && i < kMostNamed; ++i) {
    names.push_back(values[unlike[i]].name);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "replica ", rank,
      " begins with other values than the others: ", SomeNames(names, unlike.size()), ". ", kWant));
}

}  // namespace

absl::Status CompareFirstValues(Collectives& collectives, const std::vector<NamedTensor>& values,
                                bool running) {
  const at::NoGradGuard no_grad;
  const std::vector<std::int64_t> hashes = Hashes(values);
  ESPALIER_ASSIGN_OR_RETURN(const ByRank said,
                            collectives.AllGather(Summary(values, hashes, running)));
  const auto off = static_cast<std::int64_t>(ReplicaCheck::Mode::kOff);
  const auto norms = static_cast<std::int64_t>(ReplicaCheck::Mode::kNorms);
  if (AnyHas(said, kRunning, 1) || AnyHas(said, kMode, off) || !AllHave(said, kNames)) {
    return absl::OkStatus();
  }
  if (AllHave(said, kValues)) return absl::OkStatus();
  const bool round_alike = AllHave(said, kMachine) && !AnyHas(said, kMode, norms);
  // By the same seed, GPUs of another kind draw other numbers.
  if (!round_alike && AnyHas(said, kOnHost, 0)) return absl::OkStatus();
  ESPALIER_ASSIGN_OR_RETURN(const ByRank all,
                            collectives.AllGather(round_alike ? hashes : LengthsAndSums(values)));
  std::vector<std::size_t> unlike;
  std::size_t odd = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::optional<std::size_t> rank = round_alike ? Other(all, i) : Apart(all, i);
    if (!rank) continue;
    if (unlike.empty()) odd = *rank;
    unlike.push_back(i);
  }
  return unlike.empty() ? absl::OkStatus() : Refusal(values, unlike, odd);
}

}  // namespace espalier
