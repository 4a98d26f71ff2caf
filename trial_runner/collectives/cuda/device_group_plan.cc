#include "trial_runner/collectives/cuda/device_group_plan.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"

namespace espalier {
namespace {

constexpr std::size_t kNumbers = 6;

// Whether the members are those of one communicator, each in its old place.
bool AreOneCommunicator(const std::vector<DeviceOffer>& offers) {
  for (std::size_t i = 0; i < offers.size(); ++i) {
    const DeviceOffer& offer = offers[i];
    if (offer.generation < 0 || offer.generation != offers.front().generation) return false;
    if (offer.rank != static_cast<std::int64_t>(i)) return false;
    if (offer.size != static_cast<std::int64_t>(offers.size())) return false;
  }
  return true;
}

}  // namespace

std::vector<std::int64_t> DeviceOffer::ToNumbers() const {
  return std::vector<std::int64_t>{usable ? 1 : 0, gpu[0], gpu[1], generation, rank, size};
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
                     .size = numbers[5]};
}

DeviceGroupPlan PlanDeviceGroup(const std::vector<DeviceOffer>& offers_by_rank) {
  using enum DeviceGroupPlan::Kind;
  std::set<std::array<std::int64_t, 2>> gpus;
  for (const DeviceOffer& offer : offers_by_rank) {
    if (!offer.usable) return {kStaged, "a replica does not use NCCL"};
    if (!gpus.insert(offer.gpu).second) return {kStaged, "two replicas share a GPU"};
  }
  return {AreOneCommunicator(offers_by_rank) ? kKeep : kInit, {}};
}

}  // namespace espalier
