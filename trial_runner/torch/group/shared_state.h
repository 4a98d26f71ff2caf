#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "trial_runner/collectives/collectives.h"

namespace espalier {

// A state for the replicas that take it over: a description of all of it, small tensors included,
// and the memory of the large tensors, in the order in which the description names them.
struct StateOffer {
  std::shared_ptr<std::vector<std::uint8_t>> description;
  std::vector<CollectiveBuffer> tensors;
};

// What members of a group have in common and hand to replicas that join: models, optimizers,
// position.
class SharedState {
 public:
  // The first number of an order.
  enum Kind : std::int64_t {
    kSpoiled = -1,  // half overwritten: of no use
    kFresh = 0,     // neither trained nor loaded; two of them need not be equal
    kTrained = 1,
  };

  virtual ~SharedState() = default;

  // The state with the larger order is further; equal orders mean equal states, except for fresh
  // ones. All orders have the same number of numbers.
  virtual std::vector<std::int64_t> Order() const = 0;
  virtual std::int64_t step() const = 0;
  // How many steps the program of this member has left out where others took them.
  virtual std::int64_t left_out() const { return 0; }

  // Whether the program has states of its own. While they are `alone`, what is offered and expected
  // is these and nothing else.
  virtual bool HasProgramStates() const { return false; }
  virtual void SetProgramStatesAlone(bool /*alone*/) {}

  // All members of a group that forms are fresh: whether they have begun alike. `running`: this one
  // has been in a group before. kInvalidArgument on all of them where they have not; else ends
  // with the group's own error.
  virtual absl::Status CompareFresh(Collectives& /*collectives*/, bool /*running*/) {
    return absl::OkStatus();
  }

  // For another replica to take. The memory is this state's own: it stays as it is until the offer
  // is taken.
  virtual absl::StatusOr<StateOffer> Offer() = 0;
  // Takes over what the description holds, and returns the memory into which the large tensors of
  // the offer go. The state is spoiled from here until Accept(). Fails if the offer does not fit.
  virtual absl::StatusOr<std::vector<CollectiveBuffer>> Expect(
      const std::vector<std::uint8_t>& description) = 0;
  // All that was expected has arrived.
  virtual absl::Status Accept() = 0;
  // Not all has arrived, and some of it may still be written to the memory that Expect() gave: the
  // state gives that memory up.
  virtual void Forsake() = 0;

  // Loads the checkpoint that the trial has been given, if that is further.
  virtual absl::Status CatchUp() = 0;
  // Loads the checkpoint that the trial has been given, in a replica that has not begun to train.
  virtual absl::Status Restore() = 0;
  // Copies the state for a checkpoint, if there is a folder for it. It is written in the
  // background, and the service is told.
  virtual void SaveCheckpoint() = 0;
  // Waits until it is written.
  virtual void AwaitCheckpoint() = 0;
};

}  // namespace espalier
