// Preferential studies: people say which trial is the worst of several.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "adapters/optuna/dashboard/attributes.h"
#include "adapters/optuna/dashboard/listener.h"
#include "adapters/optuna/dashboard/python_text.h"
#include "base/json/parse_json.h"
#include "tuner/api/json.h"

namespace espalier::optuna_dashboard {

namespace {

using Listener = Dashboard::Listener;
using Request = httplib::Request;

struct Choice {
  std::vector<std::int64_t> candidates;  // numbers of trials
  std::int64_t clicked = 0;              // the worst of them
};

absl::StatusOr<Choice> ChoiceFrom(const Json& body) {
  const absl::Status bad = absl::InvalidArgumentError(
      "`candidates` should be an array of integers and `clicked` should be an integer.");
  Choice choice;
  const Json candidates = body.value("candidates", Json::array());
  if (!candidates.is_array()) return bad;
  for (const Json& candidate : candidates) {
    if (!candidate.is_number_integer()) return bad;
    choice.candidates.push_back(candidate.get<std::int64_t>());
  }
  if (!body.contains("clicked"))
    return absl::InvalidArgumentError("`clicked` should be specified.");
  if (!body["clicked"].is_number_integer()) return bad;
  choice.clicked = body["clicked"].get<std::int64_t>();
  if (body.value("mode", Json()) != "ChooseWorst") {
    return absl::InvalidArgumentError("`mode` should be 'ChooseWorst'.");
  }
  return choice;
}

std::string PreferencesJson(const Choice& choice) {
  Json pairs = Json::array();
  for (const std::int64_t candidate : choice.candidates) {
    if (candidate != choice.clicked) pairs.push_back({candidate, choice.clicked});
  }
  return pairs.dump();
}

std::string HistoryJson(const std::string& id, const Choice& choice) {
  const Json history = {
      {"mode", "ChooseWorst"},
      {"id", id},
      {"timestamp", absl::FormatTime("%Y-%m-%dT%H:%M:%E6S", absl::Now(), absl::LocalTimeZone())},
      {"candidates", choice.candidates},
      {"clicked", choice.clicked},
      {"preferences", ParseJson<Json>(PreferencesJson(choice), kMaxRecordDepth)}};
  return QuoteJson(history.dump());
}

absl::StatusOr<Answer> Prefer(Listener& listener, const Request& request) {
  ESPALIER_ASSIGN_OR_RETURN(const std::int64_t id, IdInPath(request, 1, "study_id"));
  ESPALIER_ASSIGN_OR_RETURN(const Json body, Body(request));
  ESPALIER_ASSIGN_OR_RETURN(const Choice choice, ChoiceFrom(body));
  ESPALIER_ASSIGN_OR_RETURN(const StudyCopy study, ReadStudy(listener.tuner, StudyId(id), 0));
  std::vector<std::int64_t> concerned = choice.candidates;
  concerned.push_back(choice.clicked);
  for (const std::int64_t number : concerned) {
    if (number < 0 || number >= std::ssize(study.trials)) {
      return absl::InvalidArgumentError(absl::StrCat("the study has no trial ", number));
    }
  }
  const std::string preference = NewUuid();
  ESPALIER_RETURN_IF_ERROR(
      listener.SetSystem(StudyId(id), absl::StrCat(std::string(kPreferencePrefix), preference),
                         PreferencesJson(choice)));
  // Such a study's trials have no values of their own.
  const std::vector<double> zeros(study.head.spec.directions.size(), 0);
  for (const std::int64_t number : concerned) {
    const TrialCopy& trial = study.trials[static_cast<std::size_t>(number)];
    if (Ended(trial.state)) continue;
    const absl::Status told = listener.Post(SetTrialState{trial.id, TrialState::kComplete, zeros});
    if (!told.ok() && !absl::IsFailedPrecondition(told)) return told;  // it has ended since
  }
  ESPALIER_RETURN_IF_ERROR(listener.SetSystem(StudyId(id),
                                              absl::StrCat(std::string(kHistoryPrefix), preference),
                                              HistoryJson(preference, choice)));
  return NoContent();
}

// Removed preferences stay in the history, and can be restored from it.
absl::StatusOr<Answer> ChangePreference(Listener& listener, const Request& request, bool restore) {
  ESPALIER_ASSIGN_OR_RETURN(const std::int64_t id, IdInPath(request, 1, "study_id"));
  const std::string entry = request.matches[2];
  ESPALIER_ASSIGN_OR_RETURN(const StudyHead head, ReadHead(listener.tuner, StudyId(id)));
  const std::string* text =
      FindText(head.attributes.system, absl::StrCat(std::string(kHistoryPrefix), entry));
  if (text == nullptr) {
    return absl::NotFoundError(absl::StrCat("history_id=", entry, " is not found"));
  }
  const Json history = ParseJson<Json>(StringOr(*text, "{}"), kMaxRecordDepth);
  const Json pairs =
      history.is_object() ? history.value("preferences", Json::array()) : Json::array();
  ESPALIER_RETURN_IF_ERROR(listener.SetSystem(StudyId(id),
                                              absl::StrCat(std::string(kPreferencePrefix), entry),
                                              restore ? pairs.dump() : "[]"));
  return NoContent();
}

absl::StatusOr<Answer> SetFeedbackComponent(Listener& listener, const Request& request) {
  ESPALIER_ASSIGN_OR_RETURN(const std::int64_t id, IdInPath(request, 1, "study_id"));
  ESPALIER_ASSIGN_OR_RETURN(const Json body, Body(request));
  const Json type = body.value("output_type", Json());
  if (type != "note" && type != "artifact") {
    return absl::InvalidArgumentError("component_type must be either 'note' or 'artifact'.");
  }
  Json component = {{"output_type", type}};
  const Json key = body.value("artifact_key", Json());
  if (!key.is_null()) component["artifact_key"] = key;
  ESPALIER_RETURN_IF_ERROR(
      listener.SetSystem(StudyId(id), std::string(kFeedbackKey), component.dump()));
  return NoContent();
}

absl::StatusOr<Answer> Skip(Listener& listener, const Request& request) {
  ESPALIER_ASSIGN_OR_RETURN(const std::int64_t id, IdInPath(request, 1, "study_id"));
  ESPALIER_ASSIGN_OR_RETURN(const std::int64_t trial, IdInPath(request, 2, "trial_id"));
  ESPALIER_ASSIGN_OR_RETURN(const StudyHead head, ReadHead(listener.tuner, StudyId(id)));
  if (!IsPreferential(head.attributes.system)) {
    return absl::InvalidArgumentError("The study is not preferential.");
  }
  ESPALIER_RETURN_IF_ERROR(
      listener.SetSystem(StudyId(id), absl::StrCat(std::string(kSkipPrefix), trial), "true"));
  return NoContent();
}

}  // namespace

void Dashboard::Listener::AddPreferences(httplib::Server& server) {
  const std::string preferences = "/api/studies/([0-9]+)/preference";
  const std::string entry = preferences + "/([^/]+)/?";
  server.Post(preferences + "/?",
              Route("preference", [this](const Request& r) { return Prefer(*this, r); }));
  server.Delete(entry, Route("preference", [this](const Request& r) {
                  return ChangePreference(*this, r, /*restore=*/false);
                }));
  server.Post(entry, Route("preference", [this](const Request& r) {
                return ChangePreference(*this, r, /*restore=*/true);
              }));
  server.Put("/api/studies/([0-9]+)/preference_feedback_component/?",
             Route("feedback_component",
                   [this](const Request& r) { return SetFeedbackComponent(*this, r); }));
  server.Post("/api/studies/([0-9]+)/([0-9]+)/skip/?",
              Route("skip", [this](const Request& r) { return Skip(*this, r); }));
}

}  // namespace espalier::optuna_dashboard
