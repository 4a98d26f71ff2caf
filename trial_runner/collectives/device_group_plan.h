#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace espalier {

// What a member of a new group says about its GPU and the communicator it has left.
struct DeviceOffer {
  // There is a GPU, and none of its communicators has failed to form before.
  bool usable = false;
  std::array<std::int64_t, 2> gpu{};  // its UUID
  // The communicator's first generation, and the member's place in it; -1: there is none.
  std::int64_t generation = -1;
  std::int64_t rank = 0;
  std::int64_t size = 0;
  bool broken = false;  // something was under way when its group was given up

  std::vector<std::int64_t> ToNumbers() const;
  static absl::StatusOr<DeviceOffer> FromNumbers(const std::vector<std::int64_t>& numbers);
};

// How the new group moves device memory. Every member comes to the same plan from the same offers.
struct DeviceGroupPlan {
  enum class Kind {
    kStaged,  // through host memory: a member has no GPU, or two share one, which NCCL refuses
    kKeep,    // all of them share a communicator, which has no other members
    kShrink,  // that communicator had other members too
    kInit,    // a new communicator
  };
  Kind kind = Kind::kStaged;
  std::vector<int> excluded;  // kShrink: ranks of the old communicator that are no longer there
  bool broken = false;        // kShrink: operations that the old one has under way are to be ended
};

DeviceGroupPlan PlanDeviceGroup(const std::vector<DeviceOffer>& offers_by_rank);

}  // namespace espalier
