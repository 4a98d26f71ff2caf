#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "trial_runner/collectives/collectives.h"
#include "trial_runner/collectives/device_group_plan.h"
#include "trial_runner/collectives/nccl_communicator.h"

namespace espalier {

// How the present group moves device memory: by an NCCL communicator that all of its members have,
// or through the host's memory. The members agree by `host`'s collectives, after it has formed the
// group. A communicator that cannot be formed is no error: the group goes through the host, and
// NCCL is tried again in the next group that has other members. One thread; what is referred to
// outlives it.
class DeviceGroup {
 public:
  struct Options {
    const NcclApi& nccl;
    std::function<std::unique_ptr<CommunicatorStream>()> make_stream;
    // Gives memory that is kept for later back to the GPU, for NCCL.
    std::function<void()> free_cached_memory;
    bool usable = false;                // see DeviceOffer
    std::array<std::int64_t, 2> gpu{};  // the same
    double formation_limit_s = 10;      // a communicator takes a second or two to form
  };

  // Waits as NcclCommunicator::Patience does, for so many seconds at most.
  using Wait = std::function<absl::Status(double limit_s, const std::function<bool()>& done)>;

  DeviceGroup(Collectives& host, Options options) : host_(host), options_(std::move(options)) {}

  // kAborted if the group is given up meanwhile, and the errors of `host`.
  absl::Status Form(const GroupPlan& plan, const Wait& wait);
  // After a group was lost: operations under way end, and the communicator goes with them. One that
  // NCCL has told an error of goes in any case.
  void GiveUp();

  // How device memory goes, as in "by NCCL"; empty: there is nobody to send it to.
  const std::string& way() const { return way_; }
  // Null: device memory goes through the host's.
  NcclCommunicator* communicator() const { return in_use_ ? communicator_.get() : nullptr; }

 private:
  using Formed = absl::StatusOr<std::unique_ptr<NcclCommunicator>>;

  DeviceOffer Offer() const;
  // The id with which the members join, from rank 0; zeros: NCCL gives none.
  absl::StatusOr<std::vector<std::int64_t>> ShareId(const GroupPlan& plan);
  Formed Join(const GroupPlan& plan, const std::vector<std::int64_t>& id, const Wait& wait);
  // Whether all members have the new communicator.
  absl::StatusOr<bool> FormCommunicator(const GroupPlan& plan, const Wait& wait);
  void Go(const GroupPlan& plan, std::string way);

  Collectives& host_;
  const Options options_;
  std::unique_ptr<NcclCommunicator> communicator_;  // may be an older group's
  GroupPlan communicator_plan_;                     // of the group it was formed for
  bool in_use_ = false;
  std::string way_;
  std::string told_;  // the way of the group that was told of last
};

}  // namespace espalier
