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
  SlotsService(Tuner& tuner, optuna_storage::Answered answered)
      : tuner_(tuner), answered_(std::move(answered)) {}

  Reactor* Acquire(Context* context, const v1::AcquireSlotsRequest* request,
                   v1::HeldSlots* response) override {
    const Call call{"AcquireSlots", context->DefaultReactor()};
    api::AcquireSlots(tuner_, *request, Fill(call, response));
    return call.reactor;
  }
  Reactor* Renew(Context* context, const v1::TrialSlotsRequest* request,
                 v1::HeldSlots* response) override {
    const Call call{"RenewSlots", context->DefaultReactor()};
    api::RenewSlots(tuner_, *request, Fill(call, response));
    return call.reactor;
  }
  Reactor* Release(Context* context, const v1::TrialSlotsRequest* request,
                   v1::ReleaseSlotsResponse*) override {
    const Call call{"ReleaseSlots", context->DefaultReactor()};
    api::ReleaseSlots(tuner_, *request,
                      [this, call](const absl::Status& status) { Finish(call, status); });
    return call.reactor;
  }

 private:
  using Call = optuna_storage::Call;

  api::SlotsDone Fill(const Call& call, v1::HeldSlots* response) {
    return [this, call, response](const absl::StatusOr<v1::HeldSlots>& held) {
      if (held.ok()) *response = *held;
      Finish(call, held.status());
    };
  }

  void Finish(const Call& call, const absl::Status& status) {
    answered_(call.method, status, call.seconds());
    call.reactor->Finish(
        {static_cast<grpc::StatusCode>(status.code()), std::string(status.message())});
  }

  Tuner& tuner_;
  const optuna_storage::Answered answered_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeSlotsService(Tuner& tuner, optuna_storage::Answered answered) {
  return std::make_unique<SlotsService>(tuner, std::move(answered));
}

}  // namespace espalier
