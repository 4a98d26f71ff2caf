#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace espalier {

// What a member of a new group says about its GPU and the communicator it has.
struct DeviceOffer {
  bool usable = false;  // there is a GPU, and NCCL is wanted
  // The GPU as NCCL tells GPUs apart: a number of the host, and the place on its PCI bus. Instances
  // of one GPU (MIG) have one place.
  std::array<std::int64_t, 2> gpu{};
  // The communicator's first generation, and the member's place in it; -1: it has none.
  std::int64_t generation = -1;
  std::int64_t rank = 0;
  std::int64_t size = 0;

  std::vector<std::int64_t> ToNumbers() const;
  static absl::StatusOr<DeviceOffer> FromNumbers(const std::vector<std::int64_t>& numbers);
};

// How the new group moves device memory. Every member comes to the same plan from the same offers.
struct DeviceGroupPlan {
  enum class Kind {
    kStaged,  // through host memory
    kKeep,    // by the communicator that just these members have
    kInit,    // by a new communicator
  };
  Kind kind = Kind::kStaged;
  std::string_view reason;  // kStaged: why NCCL cannot
};

DeviceGroupPlan PlanDeviceGroup(const std::vector<DeviceOffer>& offers_by_rank);

}  // namespace espalier
