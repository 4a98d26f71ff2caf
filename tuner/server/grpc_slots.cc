#include "tuner/server/grpc_slots.h"

#include <string>
#include <utility>

#include "slots.grpc.pb.h"
#include "tuner/api/client_slots.h"

namespace espalier {

namespace {

using Context = grpc::CallbackServerContext;
using Reactor = grpc::ServerUnaryReactor;

class SlotsService final : public v1::Slots::CallbackService {
 public:
  SlotsService(Tuner& tuner, optuna_storage::Gate gate) : tuner_(tuner), gate_(std::move(gate)) {}

  Reactor* Acquire(Context* context, const v1::AcquireSlotsRequest* request,
                   v1::HeldSlots* response) override {
    Reactor* reactor = context->DefaultReactor();
    if (!gate_.admits(*context)) return Refuse("AcquireSlots", reactor);
    api::AcquireSlots(tuner_, *request, Fill("AcquireSlots", reactor, response));
    return reactor;
  }
  Reactor* Renew(Context* context, const v1::TrialSlotsRequest* request,
                 v1::HeldSlots* response) override {
    Reactor* reactor = context->DefaultReactor();
    if (!gate_.admits(*context)) return Refuse("RenewSlots", reactor);
    api::RenewSlots(tuner_, *request, Fill("RenewSlots", reactor, response));
    return reactor;
  }
  Reactor* Release(Context* context, const v1::TrialSlotsRequest* request,
                   v1::ReleaseSlotsResponse*) override {
    Reactor* reactor = context->DefaultReactor();
    if (!gate_.admits(*context)) return Refuse("ReleaseSlots", reactor);
    api::ReleaseSlots(tuner_, *request, [this, reactor](const absl::Status& status) {
      Finish("ReleaseSlots", reactor, status);
    });
    return reactor;
  }

 private:
  api::SlotsDone Fill(const char* method, Reactor* reactor, v1::HeldSlots* response) {
    return [this, method, reactor, response](const absl::StatusOr<v1::HeldSlots>& held) {
      if (held.ok()) *response = *held;
      Finish(method, reactor, held.status());
    };
  }

  Reactor* Refuse(const char* method, Reactor* reactor) {
    Finish(method, reactor,
           absl::UnauthenticatedError(
               "this tuner service needs its token: metadata \"authorization: Bearer TOKEN\""));
    return reactor;
  }

  void Finish(const char* method, Reactor* reactor, const absl::Status& status) {
    gate_.answered(method, status);
    reactor->Finish({static_cast<grpc::StatusCode>(status.code()), std::string(status.message())});
  }

  Tuner& tuner_;
  const optuna_storage::Gate gate_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeSlotsService(Tuner& tuner, optuna_storage::Gate gate) {
  return std::make_unique<SlotsService>(tuner, std::move(gate));
}

}  // namespace espalier
