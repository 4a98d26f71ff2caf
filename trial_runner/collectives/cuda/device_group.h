#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "trial_runner/collectives/collectives.h"
#include "trial_runner/collectives/cuda/device_group_plan.h"
#include "trial_runner/collectives/cuda/nccl_communicator.h"

namespace espalier {

// How the present group moves device memory: by an NCCL communicator that all of its members have,
// or through the host's memory. The members agree by `host`'s collectives, after it has formed the
// group.
//
// A communicator takes a second or two to form, which nobody waits for: until all members have
// theirs, the group works through the host. They agree by votes: each says how far it is, and the
// votes are summed along with the work's own sums. After the same sum all use the communicator; or
// none does, because a member has failed. That is no error: the group goes on through the host, and
// NCCL is tried again in the next group that has other members.
//
// One thread; what is referred to outlives it.
class DeviceGroup {
 public:
  struct Options {
    const NcclApi& nccl;
    std::function<std::unique_ptr<CommunicatorStream>()> make_stream;
    // Gives memory that is kept for later back to the GPU, for NCCL.
    std::function<void()> free_cached_memory;
    bool usable = false;                // see DeviceOffer
    std::array<std::int64_t, 2> gpu{};  // the same
    double formation_limit_s = 60;      // of a communicator
  };

  DeviceGroup(Collectives& host, Options options) : host_(host), options_(std::move(options)) {}

  // kAborted if the group is given up meanwhile, and the errors of `host`.
  absl::Status Form(const GroupPlan& plan);

  // Whether a communicator is being formed; all members say the same. Then they are to sum their
  // votes from time to time, and each counts the sum. What is begun on device memory afterwards may
  // go another way, so all members count it between the same two operations.
  bool forming() const { return forming_.has_value(); }
  std::vector<std::int64_t> Vote();
  void CountVotes(const std::vector<std::int64_t>& sum);

  // After a group was lost: operations under way end, and the communicator goes with them. One that
  // NCCL has told an error of goes in any case.
  void GiveUp();

  const DeviceWay& way() const { return way_; }
  // Whether the group was to go by NCCL when it was formed, whatever came of that: members that ask
  // at different times must hear the same.
  bool meant_for_nccl() const { return meant_for_nccl_; }
  // Null: device memory goes through the host's.
  NcclCommunicator* communicator() const { return in_use_ ? communicator_.get() : nullptr; }

 private:
  // An attempt of all members to form a communicator.
  struct Forming {
    std::unique_ptr<NcclCommunicator> communicator;  // null: no id has been heard yet
    bool is_second = false;
    std::chrono::steady_clock::time_point ends{};  // has failed if it has not succeeded by then
    std::string failure;                           // why it has failed here; empty: it has not
  };

  DeviceOffer Offer() const;
  // The id with which the members join, from rank 0; zeros: from others, or NCCL gives none.
  std::vector<std::int64_t> NewId() const;
  // All members do so with the same id.
  void Begin(const std::vector<std::int64_t>& id);
  // How far this member is, as the place in its vote at which it counts.
  std::int64_t Look();
  void Fail();
  void Go(GradientTransport transport, std::string text);

  Collectives& host_;
  const Options options_;
  GroupPlan plan_;
  std::unique_ptr<NcclCommunicator> communicator_;  // may be an older group's
  GroupPlan communicator_plan_;                     // of the group it was formed for
  std::optional<Forming> forming_;
  bool in_use_ = false;
  bool meant_for_nccl_ = false;
  DeviceWay way_;
  std::string told_;  // the text of the way that was told of last
};

}  // namespace espalier
