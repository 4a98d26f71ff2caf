// Trials: tell, users' attributes; and the notes of studies and trials.

#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "adapters/optuna/dashboard/attributes.h"
#include "adapters/optuna/dashboard/listener.h"
#include "adapters/optuna/dashboard/python_text.h"
#include "tuner/api/json.h"

namespace espalier::optuna_dashboard {

namespace {

using Request = httplib::Request;

// Numbers, and the words that stand for those which JSON lacks.
absl::StatusOr<std::vector<double>> ValuesIn(const Json& body) {
  if (!body.contains("values") || body["values"].is_null()) {
    return absl::InvalidArgumentError("values attribute is required when state is 'Complete'.");
  }
  const absl::Status bad =
      absl::InvalidArgumentError("values attribute must be an array of numbers");
  if (!body["values"].is_array()) return bad;
  std::vector<double> values;
  for (const Json& value : body["values"]) {
    if (value.is_number()) {
      values.push_back(value.get<double>());
    } else if (value == "inf" || value == "-inf") {
      values.push_back(value == "inf" ? HUGE_VAL : -HUGE_VAL);
    } else {
      return bad;
    }
  }
  return values;
}

absl::StatusOr<Event> TellFrom(TrialId trial, const Json& body) {
  if (!body.contains("state")) return absl::InvalidArgumentError("state must be specified.");
  const std::string state =
      body["state"].is_string() ? absl::AsciiStrToLower(body["state"].get<std::string>()) : "";
  if (state == "fail") return SetTrialState{trial, TrialState::kFail, {}};
  if (state != "complete") {
    return absl::InvalidArgumentError("state must be either 'Complete' or 'Fail'.");
  }
  ESPALIER_ASSIGN_OR_RETURN(std::vector<double> values, ValuesIn(body));
  return SetTrialState{trial, TrialState::kComplete, std::move(values)};
}

// A text that has been edited since it was read.
Answer Conflict(const Note& stored) {
  return {409, absl::StrCat("{\"reason\":\"The text you are editing has changed. Please copy your "
                            "edits and refresh the page.\",\"note\":{\"version\":",
                            stored.version, ",\"body\":", QuoteJson(stored.body), "}}")};
}

}  // namespace

void Dashboard::Listener::AddTrials(httplib::Server& server) {
  server.Post("/api/trials/([0-9]+)/tell/?",
              Route("tell", [this](const Request& request) -> absl::StatusOr<Answer> {
                ESPALIER_ASSIGN_OR_RETURN(const std::int64_t id, IdInPath(request, 1, "trial_id"));
                ESPALIER_ASSIGN_OR_RETURN(const Json body, Body(request));
                ESPALIER_ASSIGN_OR_RETURN(Event event, TellFrom(TrialId(id), body));
                ESPALIER_RETURN_IF_ERROR(Post(std::move(event)));
                return NoContent();
              }));
  server.Post(
      "/api/trials/([0-9]+)/user-attrs/?",
      Route("user_attributes", [this](const Request& request) -> absl::StatusOr<Answer> {
        ESPALIER_ASSIGN_OR_RETURN(const std::int64_t id, IdInPath(request, 1, "trial_id"));
        ESPALIER_ASSIGN_OR_RETURN(const Json body, Body(request));
        const Json attributes = body.value("user_attrs", Json());
        if (!attributes.is_object() || attributes.empty()) {
          return absl::InvalidArgumentError("user_attrs must be specified.");
        }
        for (const auto& [key, value] : attributes.items()) {
          ESPALIER_RETURN_IF_ERROR(Post(SetTrialAttribute{TrialId(id), false, key, value.dump()}));
        }
        return NoContent();
      }));

  const auto save = [this](StudyId study, std::optional<TrialId> trial,
                           const Request& request) -> absl::StatusOr<Answer> {
    ESPALIER_ASSIGN_OR_RETURN(const Json body, Body(request));
    const Json version = body.value("version", Json());
    const Json text = body.value("body", Json());
    if (!version.is_number_integer() || !text.is_string()) {
      return absl::InvalidArgumentError("Invalid request: a note needs a version and a body.");
    }
    const std::lock_guard lock(notes);
    ESPALIER_ASSIGN_OR_RETURN(const StudyHead head, ReadHead(tuner, study));
    const Note stored = NoteOf(head.attributes.system, trial);
    const Note note{version.get<std::int64_t>(), text.get<std::string>()};
    if (note.version != stored.version + 1) return Conflict(stored);
    for (const auto& [key, json] : NoteAttributes(head.attributes.system, trial, note)) {
      ESPALIER_RETURN_IF_ERROR(SetSystem(study, key, json));
    }
    return NoContent();
  };
  server.Put("/api/studies/([0-9]+)/note/?",
             Route("note", [save](const Request& request) -> absl::StatusOr<Answer> {
               ESPALIER_ASSIGN_OR_RETURN(const std::int64_t id, IdInPath(request, 1, "study_id"));
               return save(StudyId(id), std::nullopt, request);
             }));
  server.Put("/api/studies/([0-9]+)/([0-9]+)/note/?",
             Route("note", [this, save](const Request& request) -> absl::StatusOr<Answer> {
               ESPALIER_ASSIGN_OR_RETURN(const std::int64_t id, IdInPath(request, 1, "study_id"));
               ESPALIER_ASSIGN_OR_RETURN(const std::int64_t trial,
                                         IdInPath(request, 2, "trial_id"));
               ESPALIER_ASSIGN_OR_RETURN(const TrialCopy shown, ReadTrial(tuner, TrialId(trial)));
               if (shown.study != StudyId(id)) {
                 return absl::NotFoundError(absl::StrCat("study_id=", id, " has no trial ", trial));
               }
               return save(StudyId(id), TrialId(trial), request);
             }));
}

}  // namespace espalier::optuna_dashboard
