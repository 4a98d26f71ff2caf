#include "tuner/server/grpc/grpc_slots.h"

#include <utility>

#include "slots.grpc.pb.h"
#include "tuner/api/client_slots.h"

namespace espalier {

namespace {

using Context = grpc::CallbackServerContext;
using Reactor = grpc::ServerUnaryReactor;

class SlotsService final : public v1::Slots::CallbackService {
 public:
  SlotsService(Tuner& tuner, Answered answered) : tuner_(tuner), answered_(std::move(answered)) {}

  Reactor* Acquire(Context* context, const v1::AcquireSlotsRequest* request,
                   v1::HeldSlots* response) override {
    const GrpcCall call{"AcquireSlots", context->DefaultReactor()};
    api::AcquireSlots(tuner_, *request, Fill(call, response));
    return call.reactor;
  }
  Reactor* Renew(Context* context, const v1::TrialSlotsRequest* request,
                 v1::HeldSlots* response) override {
    const GrpcCall call{"RenewSlots", context->DefaultReactor()};
    api::RenewSlots(tuner_, *request, Fill(call, response));
    return call.reactor;
  }
  Reactor* Release(Context* context, const v1::TrialSlotsRequest* request,
                   v1::ReleaseSlotsResponse*) override {
    const GrpcCall call{"ReleaseSlots", context->DefaultReactor()};
    api::ReleaseSlots(tuner_, *request,
                      [this, call](const absl::Status& status) { call.Finish(status, answered_); });
    return call.reactor;
  }

 private:
  api::SlotsDone Fill(const GrpcCall& call, v1::HeldSlots* response) {
    return [this, call, response](const absl::StatusOr<v1::HeldSlots>& held) {
      if (held.ok()) *response = *held;
      call.Finish(held.status(), answered_);
    };
  }

  Tuner& tuner_;
  const Answered answered_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeSlotsService(Tuner& tuner, Answered answered) {
  return std::make_unique<SlotsService>(tuner, std::move(answered));
}

}  // namespace espalier
