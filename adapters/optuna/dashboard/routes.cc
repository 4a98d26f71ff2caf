#include "adapters/optuna/dashboard/routes.h"

#include <charconv>
#include <filesystem>
#include <map>

#include "absl/strings/str_cat.h"
#include "adapters/optuna/dashboard/listener.h"
#include "tuner/api/json.h"

namespace espalier::optuna_dashboard {

namespace {

// The front end shows the reason, whatever the number.
int HttpStatus(absl::StatusCode code) {
  using Code = absl::StatusCode;
  static const std::map<Code, int> kStatuses = {
      {Code::kNotFound, 404},          {Code::kUnimplemented, 404}, {Code::kPermissionDenied, 403},
      {Code::kResourceExhausted, 429}, {Code::kUnavailable, 503},   {Code::kInternal, 500}};
  const auto found = kStatuses.find(code);
  return found == kStatuses.end() ? 400 : found->second;
}

}  // namespace

absl::Status Check(const Options& options) {
  namespace fs = std::filesystem;
  std::error_code error;
  for (const char* file : {"index.html", "public/bundle.js"}) {
    if (options.page_folder.empty()) break;
    if (!fs::is_regular_file(fs::path(options.page_folder) / file, error)) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", options.page_folder, "\" has no ", file,
                       ": name the folder of an installed optuna-dashboard (python3 -c 'import "
                       "optuna_dashboard; "
                       "print(optuna_dashboard.__path__[0])')"));
    }
  }
  if (!options.artifact_folder.empty() && !fs::is_directory(options.artifact_folder, error)) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", options.artifact_folder, "\" is no folder: make it first"));
  }
  return absl::OkStatus();
}

Dashboard::Dashboard(Tuner& tuner, const Options& options, Answered answered)
    : listener_(new Listener{
          tuner, options, std::move(answered), ArtifactFolder(options.artifact_folder), {}}) {}

Dashboard::~Dashboard() = default;

void Dashboard::AddRoutes(httplib::Server& server) {
  listener_->AddPages(server);
  listener_->AddStudies(server);
  listener_->AddTrials(server);
  listener_->AddPreferences(server);
  listener_->AddArtifacts(server);
}

httplib::Server::Handler Dashboard::Listener::Route(std::string name, Act act) {
  return [this, name = std::move(name), act = std::move(act)](const httplib::Request& request,
                                                              httplib::Response& response) {
    absl::StatusOr<Answer> answer = act(request);
    if (!answer.ok()) {
      const absl::string_view reason = answer.status().message();
      answer = Answer{HttpStatus(answer.status().code()),
                      absl::StrCat("{\"reason\":", QuoteJson({reason.data(), reason.size()}), "}")};
    }
    // The front end of 0.21 reads JSON of every answer and takes one without for a failure; its
    // browsers name their page's origin, programs do not and get what they expect.
    if (answer->status == 204 && request.has_header("Origin")) answer = Answer{200, "{}"};
    response.status = answer->status;
    if (answer->status != 204) {
      response.set_content(answer->body, answer->type.c_str());
    }
    for (const auto& [key, value] : answer->headers) response.set_header(key, value);
    answered(name, answer->status);
  };
}

absl::StatusOr<Json> Body(const httplib::Request& request) {
  if (request.body.find_first_not_of(" \t\r\n") == std::string::npos) return Json::object();
  ESPALIER_ASSIGN_OR_RETURN(Json body, search_spaces_json::Parse("body", request.body));
  if (!body.is_object()) return absl::InvalidArgumentError("the body must be a JSON object");
  return body;
}

absl::StatusOr<std::int64_t> IdInPath(const httplib::Request& request, std::size_t group,
                                      std::string_view what) {
  const std::string text = request.matches[group];
  std::int64_t id = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), id).ec == std::errc()) return id;
  return absl::NotFoundError(absl::StrCat(std::string(what), "=", text, " is not found"));
}

}  // namespace espalier::optuna_dashboard
