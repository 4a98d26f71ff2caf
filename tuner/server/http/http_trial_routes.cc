// Routes of the HTTP endpoint: trials that clients ask for, run and tell.

#include "absl/strings/str_cat.h"
#include "tuner/api/operations.h"
#include "tuner/api/trial_operations.h"
#include "tuner/api/trial_output.h"
#include "tuner/server/http/http_message.h"
#include "tuner/server/http/http_routes.h"

namespace espalier {

namespace {

// Reads the body, adds the id that the path names, and calls.
template <typename Request, typename Operation>
HttpAnswer OnTrial(const HttpCall& call, Operation operation) {
  Request request;
  const absl::StatusOr<std::int64_t> id = TrialIdOf(call);
  if (!id.ok()) return ToAnswer(id.status());
  const absl::Status read = ReadBody(call, request, {"trial_id"});
  if (!read.ok()) return ToAnswer(read);
  request.set_trial_id(*id);
  return ToAnswer(operation(call.tuner, request));
}

template <typename Request, typename Operation>
HttpAnswer NewTrial(const HttpCall& call, Operation operation) {
  Request request;
  const absl::Status read = ReadBody(call, request, {"study", "request_key"});
  if (!read.ok()) return ToAnswer(read);
  request.set_study(call.path.at("study"));
  request.set_request_key(call.request_key);
  return ToAnswer(operation(call.tuner, request));
}

HttpAnswer Ask(const HttpCall& call) { return NewTrial<v1::AskRequest>(call, api::Ask); }
HttpAnswer Enqueue(const HttpCall& call) {
  return NewTrial<v1::EnqueueRequest>(call, api::Enqueue);
}

HttpAnswer Best(const HttpCall& call) {
  v1::StudyName name;
  name.set_name(call.path.at("study"));
  return ToAnswer(api::GetBestTrial(call.tuner, name));
}

HttpAnswer GetTrialRoute(const HttpCall& call) { return OnTrial<v1::TrialId>(call, api::GetTrial); }
HttpAnswer ShouldPrune(const HttpCall& call) {
  return OnTrial<v1::TrialId>(call, api::ShouldPrune);
}
HttpAnswer Report(const HttpCall& call) { return OnTrial<v1::ReportRequest>(call, api::Report); }
HttpAnswer Cancel(const HttpCall& call) {
  return OnTrial<v1::CancelTrialRequest>(call, api::CancelTrial);
}

HttpAnswer Pin(const HttpCall& call) {
  v1::PinTrialRequest request;
  const absl::StatusOr<std::int64_t> id = TrialIdOf(call);
  if (!id.ok()) return ToAnswer(id.status());
  const absl::Status read = ReadBody(call, request, {"study", "trial_number"});
  if (!read.ok()) return ToAnswer(read);
  v1::TrialId trial;
  trial.set_trial_id(*id);
  const absl::StatusOr<v1::TrialRecord> found = api::GetTrial(call.tuner, trial);
  if (!found.ok()) return ToAnswer(found.status());
  request.set_study(found->study());
  request.set_trial_number(found->number());
  return ToAnswer(api::PinTrial(call.tuner, request));
}

HttpAnswer Output(const HttpCall& call) {
  v1::TrialOutputRequest request;
  const absl::StatusOr<std::int64_t> id = TrialIdOf(call);
  if (!id.ok()) return ToAnswer(id.status());
  request.set_trial_id(*id);
  const auto output = api::GetTrialOutput(call.tuner, request);
  if (!output.ok()) return ToAnswer(output.status());
  return {absl::OkStatus(), output->text(), "text/plain; charset=utf-8"};
}

HttpAnswer SetAttributes(const HttpCall& call) {
  return OnTrial<v1::SetAttributesRequest>(call, api::SetAttributes);
}

HttpAnswer Tell(const HttpCall& call) {
  return OnTrial<v1::TellRequest>(
      call, [](Tuner& tuner, const v1::TellRequest& request) -> absl::StatusOr<v1::TellResponse> {
        if (!request.has_value() && request.state() == v1::TRIAL_STATE_UNSPECIFIED) {
          return absl::InvalidArgumentError(
              "\"value\" or \"state\" is needed, such as {\"value\": 0.5, \"state\": "
              "\"complete\"}");
        }
        return api::Tell(tuner, request);
      });
}

}  // namespace

std::vector<HttpRoute> TrialRoutes() {
  return {{"POST", "/api/studies/{study}/ask", "Ask", Ask},
          {"POST", "/api/studies/{study}/enqueue", "Enqueue", Enqueue},
          {"GET", "/api/studies/{study}/best", "GetBestTrial", Best},
          {"GET", "/api/trials/{trial_id}", "GetTrial", GetTrialRoute},
          {"POST", "/api/trials/{trial_id}/report", "Report", Report},
          {"GET", "/api/trials/{trial_id}/should-prune", "ShouldPrune", ShouldPrune},
          {"POST", "/api/trials/{trial_id}/tell", "Tell", Tell},
          {"POST", "/api/trials/{trial_id}/cancel", "CancelTrial", Cancel},
          {"POST", "/api/trials/{trial_id}/pin", "PinTrial", Pin},
          {"GET", "/api/trials/{trial_id}/output", "GetTrialOutput", Output},
          {"POST", "/api/trials/{trial_id}/attributes", "SetAttributes", SetAttributes}};
}

}  // namespace espalier
