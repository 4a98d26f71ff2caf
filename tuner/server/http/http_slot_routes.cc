// Routes of the HTTP endpoint: slots of the pool for trials that clients run by themselves.

#include <future>
#include <memory>

#include "tuner/api/client_slots.h"
#include "tuner/server/http/http_message.h"
#include "tuner/server/http/http_routes.h"

namespace espalier {

namespace {

constexpr int kAccepted = 202;

// Answered at once, since a call that waited would keep one of few threads from others. Without
// slots the request has its place among those that wait, and is to be made again; made by their
// holder it renews them.
HttpAnswer Acquire(const HttpCall& call) {
  v1::AcquireSlotsRequest request;
  const absl::StatusOr<std::int64_t> id = TrialIdOf(call);
  if (!id.ok()) return ToAnswer(id.status());
  const absl::Status read = ReadBody(call, request, {"trial_id", "wait_s"});
  if (!read.ok()) return ToAnswer(read);
  request.set_trial_id(*id);
  auto answered = std::make_shared<std::promise<absl::StatusOr<v1::HeldSlots>>>();
  api::AcquireSlots(call.tuner, request, [answered](const absl::StatusOr<v1::HeldSlots>& held) {
    answered->set_value(held);
  });
  const absl::StatusOr<v1::HeldSlots> held = answered->get_future().get();
  return ToAnswer(held, held.ok() && held->slots().empty() ? kAccepted : 200);
}

HttpAnswer Release(const HttpCall& call) {
  v1::TrialSlotsRequest request;
  const absl::StatusOr<std::int64_t> id = TrialIdOf(call);
  if (!id.ok()) return ToAnswer(id.status());
  if (const absl::Status read = ReadBody(call, request, {"trial_id"}); !read.ok()) {
    return ToAnswer(read);
  }
  request.set_trial_id(*id);
  auto answered = std::make_shared<std::promise<absl::Status>>();
  api::ReleaseSlots(call.tuner, request,
                    [answered](const absl::Status& status) { answered->set_value(status); });
  const absl::Status status = answered->get_future().get();
  return status.ok() ? HttpAnswer{status, "{}"} : ToAnswer(status);
}

}  // namespace

std::vector<HttpRoute> SlotRoutes() {
  return {{.method = "POST",
           .path = "/api/trials/{trial_id}/slots",
           .operation = "AcquireSlots",
           .answer = Acquire,
           .query = QueryKeys{}},
          {.method = "DELETE",
           .path = "/api/trials/{trial_id}/slots",
           .operation = "ReleaseSlots",
           .answer = Release,
           .query = QueryKeys{}}};
}

}  // namespace espalier
