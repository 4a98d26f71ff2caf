#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "tuner/messages/membership.h"
#include "tuner/messages/replica_messages.h"

namespace espalier {

class GroupProgress;

// What a replica that has left its group comes back as.
struct Adopted {
  Adoption as;
  std::int64_t generation = 0;  // the highest seen before, which does not concern the new replica
};

// The seam between a replica and the service. Any thread may call any function. When a control
// plane is lost for good it ends the process: the replica's lease is over, and another one may run
// the trial.
class ControlPlane {
 public:
  virtual ~ControlPlane() = default;

  // Returns when the message is on its way; messages arrive in order.
  virtual void Send(const ReplicaMessage& message) = 0;

  // The highest generation seen. Cheap, since it is asked at every step.
  virtual std::int64_t LatestGeneration() const = 0;
  virtual Membership Latest() const = 0;
  // Blocks until a generation above `generation` is known, and returns the highest.
  virtual Membership WaitAbove(std::int64_t generation) = 0;
  // The same, for at most `patience_s`.
  virtual std::optional<Membership> WaitAboveFor(std::int64_t generation, double patience_s) = 0;

  // Has `listener` called with each newer membership, and at once with the latest if there is one.
  // It must be quick, and must not call back. An empty function ends the listening; when this
  // returns, the former listener is not running and will not be called again.
  virtual void Listen(std::function<void(const Membership&)> listener) = 0;

  // The service is told once a second what is recorded there, as long as it changes.
  virtual GroupProgress& progress() = 0;

  // For a replica that has left its group. Waits, for as long as the agent keeps it as a spare,
  // until it is wanted again under another id. nullopt: spares are not kept here, and the replica
  // is to end with exit code 0. To the service both are the same. `device_bytes`: what it still
  // holds of its GPU's memory.
  virtual std::optional<Adopted> Park(std::int64_t device_bytes) = 0;
};

}  // namespace espalier
