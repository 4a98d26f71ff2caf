#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "trial_runner/collectives/collectives.h"
#include "trial_runner/elastic/control_plane.h"
#include "trial_runner/torch/group/contact_watch.h"
#include "trial_runner/torch/group/program_place.h"
#include "trial_runner/torch/group/shared_state.h"
#include "trial_runner/torch/process/trial_context.h"

namespace espalier {

// This replica's place in its trial's changing group. A regroup is announced by the control plane;
// members leave together at a step boundary (Pending() rides in their all-reduce), or each at once
// if the group is broken (Abandoned(), or a collective that failed). Regroup() then forms the
// newest generation and brings all members to the state of the one that is furthest. In replicas
// that are no longer members it does not return: they end, with exit code 0, or, where the agent
// keeps spares, it returns when they have been adopted as new replicas and are members again. The
// state they then have may be any number of steps further than the one they left with.
class ReplicaGroup {
 public:
  using Clock = std::chrono::steady_clock;

  // All must outlive the group. `release_memory` is called when this replica leaves and becomes a
  // spare, which must hold no more than its model and optimizer; `prepare_memory` when such a spare
  // is needed again, before other members wait for it.
  ReplicaGroup(TrialContext& trial, Collectives& collectives, SharedState& state,
               std::function<void()> release_memory, std::function<void()> prepare_memory);
  ~ReplicaGroup();

  // Says that this replica is ready, and waits for the first group that it is a member of.
  void Join(ReplicaReady ready);

  bool joined() const { return size_ > 0; }
  int rank() const { return rank_; }
  // The size of the group at present, see Narrow.
  int size() const { return narrowed() ? narrowed_size_ : size_; }
  int whole_size() const { return size_; }
  int nodes() const { return nodes_; }
  const std::vector<ReplicaId>& members() const { return members_; }  // by rank

  // Whether a newer generation is announced and this replica has prepared for it, which is to be
  // counted in the next all-reduce.
  bool Pending() const {
    const std::int64_t latest = trial_.control->LatestGeneration();
    return latest > generation_ && collectives_.Prepared(latest);
  }
  // Whether a newer generation is announced that does not wait for a step boundary.
  bool Abandoned() const { return abandoned_below_.load() > generation_; }

  // Where this replica waits for the others next.
  void At(const ProgramPlace& place) { watch_.At(place); }
  // Waits until all members are at this place; to be called before operations that a program asks
  // for, which it might do on some replicas only. Ends the program where they are at different
  // ones. kFailedPrecondition: they are, but some of them have left out steps that others took.
  absl::Status Meet(const ProgramPlace& place);
  // All members call it: they are brought to the state of the one that is furthest. Ends as
  // AllReduceSum does.
  absl::Status Equalise();
  // All members call it: they get what rank 0 offers of its state. Ends likewise.
  absl::Status TakeStateOfRank0();

  // Ends with the first error; the caller then drops what it has begun, and calls Regroup.
  absl::Status AllReduceSum(const CollectiveBuffer& buffer);
  absl::Status Broadcast(const CollectiveBuffer& buffer, int root) {
    return collectives().Broadcast(buffer, root);
  }
  // The collectives of the group at present; may be others after Narrow, Widen and Regroup.
  Collectives& collectives() { return narrowed_ ? *narrowed_ : collectives_; }

  // All members call it alike. From here to Widen() or Regroup() the group consists of its first
  // `size` members: what these do together is no affair of the others, which go to Widen() at once.
  void Narrow(int size);
  bool narrowed() const { return narrowed_ != nullptr; }
  // All members come together again, at `place`, and are brought to the state of the furthest of
  // them. Returns what each says, by rank. Ends as AllReduceSum does.
  absl::StatusOr<std::vector<std::vector<std::int64_t>>> Widen(
      const ProgramPlace& place, const std::vector<std::int64_t>& says);

  // Waits for a newer generation, if none is announced yet, and joins it. `training_until` is when
  // the last finished step ended. Usually the service knows of a loss before the group's members
  // do. When the replica is told of no newer generation for kStuckAfter_s after it has lost touch
  // with a member, or has waited for one in vain, it says that it is stuck; after
  // kRegroupPatience_s it ends.
  static constexpr double kStuckAfter_s = ContactWatch::kStuckAfter_s;
  static constexpr double kRegroupPatience_s = 300;
  void Regroup(Clock::time_point training_until);

  // All members have taken a step. Where it took so long, waiting for one another may do so too.
  void EndStep(std::optional<double> step_time_s);

 private:
  // What `wait` does where all members come together. Others may take longer to come there than
  // this one did, although a planned regroup is announced.
  absl::Status WaitPatiently(const std::function<absl::Status()>& wait);
  absl::Status ComparePlaces(const ProgramPlace& place);
  void Follow(const Membership& announced);  // on the control plane's thread
  // Ends the process where no newer one is announced for too long.
  Membership AwaitNewer(std::int64_t generation);
  // True: this replica left in between and has come back as another.
  bool FormNewest(Membership newest, ReplicaRegrouped& times);
  void SendEnd(ReplicaFinished finished);
  [[noreturn]] void FailTogether(int rank, const absl::Status& why);
  absl::Status FormAndEqualise(const Membership& membership, int rank, ReplicaRegrouped& times);
  // Ends this process, or returns as a new replica with its first membership.
  Membership Leave(const Membership& membership, bool broken);
  // Says Ready and waits for a generation above that has this replica in it, or no members.
  Membership AwaitMembership(std::int64_t above);
  void Finish(const ReplicaFinished& finished);

  TrialContext& trial_;
  Collectives& collectives_;
  SharedState& state_;
  const std::function<void()> release_memory_;
  const std::function<void()> prepare_memory_;
  ReplicaReady ready_;
  std::int64_t generation_ = 0;
  int rank_ = 0;
  int size_ = 0;
  int nodes_ = 1;
  std::vector<ReplicaId> members_;
  std::unique_ptr<Collectives> narrowed_;  // null: the group is whole
  int narrowed_size_ = 0;
  std::atomic<bool> forming_{false};  // any newer generation ends what is under way
  std::atomic<std::int64_t> abandoned_below_{0};
  std::atomic<double> grace_s_;
  Clock::time_point together_ = Clock::now();  // when all members were last known to be
  ContactWatch watch_;
};

}  // namespace espalier
