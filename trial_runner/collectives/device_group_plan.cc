#include "trial_runner/collectives/device_group_plan.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

namespace espalier {
namespace {

constexpr std::size_t kNumbers = 7;

// One GPU each, and all of them work.
bool FitForNccl(const std::vector<DeviceOffer>& offers) {
  std::set<std::pair<std::int64_t, std::int64_t>> gpus;
  return std::all_of(offers.begin(), offers.end(), [&](const DeviceOffer& offer) {
    return offer.usable && gpus.emplace(offer.gpu[0], offer.gpu[1]).second;
  });
}

// Whether all were in one communicator and stand in the same order as there: what shrinking keeps.
bool InOneCommunicator(const std::vector<DeviceOffer>& offers) {
  const DeviceOffer& first = offers.front();
  if (first.generation < 0) return false;
  for (std::size_t i = 0; i < offers.size(); ++i) {
    if (offers[i].generation != first.generation || offers[i].size != first.size) return false;
    if (i > 0 && offers[i].rank <= offers[i - 1].rank) return false;
  }
  return true;
}

}  // namespace

std::vector<std::int64_t> DeviceOffer::ToNumbers() const {
  return std::vector<std::int64_t>{usable ? 1 : 0, gpu[0], gpu[1],        generation,
                                   rank,           size,   broken ? 1 : 0};
}

absl::StatusOr<DeviceOffer> DeviceOffer::FromNumbers(const std::vector<std::int64_t>& numbers) {
  if (numbers.size() != kNumbers) {
    return absl::InternalError(
        absl::StrCat("a member told ", numbers.size(), " numbers about its GPU: want ", kNumbers));
  }
  return DeviceOffer{.usable = numbers[0] != 0,
                     .gpu = {numbers[1], numbers[2]},
                     .generation = numbers[3],
                     .rank = numbers[4],
                     .size = numbers[5],
                     .broken = numbers[6] != 0};
}

DeviceGroupPlan PlanDeviceGroup(const std::vector<DeviceOffer>& offers_by_rank) {
  DeviceGroupPlan plan;
  if (offers_by_rank.size() < 2 || !FitForNccl(offers_by_rank)) return plan;
  plan.kind = DeviceGroupPlan::Kind::kInit;
  if (!InOneCommunicator(offers_by_rank)) return plan;
  plan.broken = std::any_of(offers_by_rank.begin(), offers_by_rank.end(),
                            [](const DeviceOffer& offer) { return offer.broken; });
  std::set<std::int64_t> present;
  for (const DeviceOffer& offer : offers_by_rank) present.insert(offer.rank);
  for (int rank = 0; rank < offers_by_rank.front().size; ++rank) {
    if (!present.contains(rank)) plan.excluded.push_back(rank);
  }
  // A broken communicator can be shrunk but not mended.
  if (!plan.excluded.empty()) plan.kind = DeviceGroupPlan::Kind::kShrink;
  if (plan.excluded.empty() && !plan.broken) plan.kind = DeviceGroupPlan::Kind::kKeep;
  return plan;
}

}  // namespace espalier
