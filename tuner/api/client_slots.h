#pragma once

#include <functional>

#include "slots.pb.h"
#include "tuner/api/tuner.h"

namespace espalier::api {

// Slots of the pool for trials that clients run by themselves. `done` is called once, on any
// thread, perhaps before these return; AcquireSlots may take its wait_s until then.
using SlotsDone = std::function<void(const absl::StatusOr<v1::HeldSlots>&)>;
using ReleaseDone = std::function<void(const absl::Status&)>;

void AcquireSlots(Tuner& tuner, const v1::AcquireSlotsRequest& request, SlotsDone done);
void RenewSlots(Tuner& tuner, const v1::TrialSlotsRequest& request, SlotsDone done);
void ReleaseSlots(Tuner& tuner, const v1::TrialSlotsRequest& request, ReleaseDone done);

}  // namespace espalier::api
