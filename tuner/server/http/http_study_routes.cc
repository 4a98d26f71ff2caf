// Routes of the HTTP endpoint: studies.

#include "absl/strings/str_cat.h"
#include "tuner/api/operations.h"
#include "tuner/server/http/http_message.h"
#include "tuner/server/http/http_routes.h"

namespace espalier {

namespace {

v1::StudyName NameOf(const HttpCall& call) {
  v1::StudyName name;
  name.set_name(call.path.at("study"));
  return name;
}

v1::GetStudyRequest Wanted(const HttpCall& call) {
  v1::GetStudyRequest wanted;
  wanted.set_name(call.path.at("study"));
  wanted.set_active_only(Flag(call, "active", false));
  wanted.set_without_values(!Flag(call, "values", true));
  return wanted;
}

HttpAnswer List(const HttpCall& call) { return ToAnswer(api::ListStudies(call.tuner, {})); }

// The body is a study file.
HttpAnswer Create(const HttpCall& call) {
  v1::CreateStudyRequest request;
  request.set_study_json(call.body);
  request.set_directory("/");
  request.set_exist_ok(Flag(call, "exist_ok", false));
  request.set_request_key(call.request_key);
  const auto created = api::CreateOrFindStudy(call.tuner, request);
  if (!created.ok()) return ToAnswer(created.status());
  constexpr int kCreated = 201;
  return ToAnswer(absl::StatusOr<v1::Study>(created->study), created->existed ? 200 : kCreated);
}

HttpAnswer GetStudyRoute(const HttpCall& call) {
  return ToAnswer(api::GetStudy(call.tuner, Wanted(call)));
}

HttpAnswer GetTrials(const HttpCall& call) {
  const auto details = api::GetStudy(call.tuner, Wanted(call));
  if (!details.ok()) return ToAnswer(details.status());
  std::string json = "{\"trials\":[";
  for (const v1::Trial& trial : details->trials()) {
    if (json.back() != '[') json += ',';
    json += MessageToJson(trial);
  }
  return {absl::OkStatus(), json + "]}"};
}

HttpAnswer Delete(const HttpCall& call) {
  return ToAnswer(api::DeleteStudy(call.tuner, NameOf(call)));
}

HttpAnswer Stop(const HttpCall& call) { return ToAnswer(api::StopStudy(call.tuner, NameOf(call))); }

HttpAnswer Resume(const HttpCall& call) {
  v1::ResumeStudyRequest request;
  const absl::Status read = ReadBody(call, request, {"name"});
  if (!read.ok()) return ToAnswer(read);
  request.set_name(call.path.at("study"));
  return ToAnswer(api::ResumeStudy(call.tuner, request));
}

}  // namespace

std::vector<HttpRoute> StudyRoutes() {
  return {{"GET", "/api/studies", "ListStudies", List},
          {"POST", "/api/studies", "CreateStudy", Create},
          {"GET", "/api/studies/{study}", "GetStudy", GetStudyRoute},
          {"DELETE", "/api/studies/{study}", "DeleteStudy", Delete},
          {"GET", "/api/studies/{study}/trials", "GetTrials", GetTrials},
          {"POST", "/api/studies/{study}/stop", "StopStudy", Stop},
          {"POST", "/api/studies/{study}/resume", "ResumeStudy", Resume}};
}

}  // namespace espalier
