#include "tuner/api/client_slots.h"

#include <string>
#include <utility>

#include "base/guarded.h"

namespace espalier::api {

namespace {

v1::HeldSlots ToProto(const Reply& reply, const View& view) {
  v1::HeldSlots out;
  out.set_lease_s(reply.lease_s());
  out.set_waits_for(reply.waits_for());
  for (const Slot& slot : reply.slots()) {
    v1::HeldSlot& held = *out.add_slots();
    held.set_index(slot.index);
    const auto node = view.core.state().nodes.find(slot.node);
    if (node == view.core.state().nodes.end()) continue;
    held.set_node(node->second);
    const auto gpus = view.gpus.find(node->second);
    if (gpus == view.gpus.end() || gpus->second.empty()) continue;
    // As agents share them out: slot i is on the i-th, and round again.
    const NodeGpu& gpu = gpus->second[static_cast<std::size_t>(slot.index) % gpus->second.size()];
    held.mutable_gpu()->set_name(gpu.name);
    held.mutable_gpu()->set_uuid(gpu.uuid);
    held.mutable_gpu()->set_memory_bytes(gpu.memory_bytes);
  }
  return out;
}

void PostForSlots(Tuner& tuner, Event event, SlotsDone done) {
  tuner.PostThen(std::move(event), [&tuner, done = std::move(done)](const Reply& reply) {
    if (!reply.status.ok()) return done(reply.status);
    tuner.ReadThen([reply, done](const View* view) {
      if (view == nullptr) return done(ShuttingDown());
      absl::StatusOr<v1::HeldSlots> held;
      const absl::Status told = Guarded([] { return std::string("the slots of a client"); },
                                        [&] { held = ToProto(reply, *view); });
      if (!told.ok()) held = told;
      done(held);
    });
  });
}

}  // namespace

void AcquireSlots(Tuner& tuner, const v1::AcquireSlotsRequest& request, SlotsDone done) {
  PostForSlots(tuner,
               espalier::AcquireSlots{TrialId(request.trial_id()), request.slots(), request.node(),
                                      request.wait_s()},
               std::move(done));
}

void RenewSlots(Tuner& tuner, const v1::TrialSlotsRequest& request, SlotsDone done) {
  PostForSlots(tuner, espalier::RenewSlots{TrialId(request.trial_id())}, std::move(done));
}

void ReleaseSlots(Tuner& tuner, const v1::TrialSlotsRequest& request, ReleaseDone done) {
  tuner.PostThen(espalier::ReleaseSlots{TrialId(request.trial_id())},
                 [done = std::move(done)](const Reply& reply) { done(reply.status); });
}

}  // namespace espalier::api
