// Studies: list, detail, create, rename, delete, importances, note, CSV.

#include <algorithm>
#include <charconv>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "adapters/optuna/dashboard/attributes.h"
#include "adapters/optuna/dashboard/listener.h"
#include "adapters/optuna/dashboard/study_json.h"
#include "adapters/optuna/dashboard/trial_table.h"
#include "tuner/analysis/best_trials.h"
#include "tuner/analysis/importance.h"
#include "tuner/study_file/study_file.h"

namespace espalier::optuna_dashboard {

namespace {

using Request = httplib::Request;

absl::StatusOr<StudyId> StudyIn(const Request& request) {
  ESPALIER_ASSIGN_OR_RETURN(const std::int64_t id, IdInPath(request, 1, "study_id"));
  return StudyId(id);
}

absl::StatusOr<std::string> NameIn(const Json& body) {
  if (body.contains("study_name") && body["study_name"].is_string() && body["study_name"] != "") {
    return body["study_name"].get<std::string>();
  }
  return absl::InvalidArgumentError("You need to set study_name and direction");
}

absl::StatusOr<StudySpec> SpecFrom(const Json& body) {
  ESPALIER_ASSIGN_OR_RETURN(std::string name, NameIn(body));
  std::vector<Direction> directions;
  const Json words = body.contains("directions") ? body["directions"] : Json();
  for (const Json& word : words.is_array() ? words : Json::array()) {
    const auto direction = DirectionOf(
        word.is_string() ? absl::AsciiStrToLower(word.get<std::string>()) : std::string());
    if (!direction) directions.clear();
    if (!direction) break;
    directions.push_back(*direction);
  }
  if (directions.empty()) {
    return absl::InvalidArgumentError("You need to set study_name and direction");
  }
  return StudyOfClients(std::move(name), std::move(directions));
}

// The words that the front end's users know.
absl::Status NameTaken(const absl::Status& status) {
  return absl::IsAlreadyExists(status) ? absl::InvalidArgumentError("Study name already exists.")
                                       : status;
}

absl::StatusOr<Answer> Summaries(Tuner& tuner) {
  ESPALIER_ASSIGN_OR_RETURN(const std::vector<StudyHead> studies, ReadStudies(tuner));
  return Answer{200, SummariesJson(studies)};
}

absl::StatusOr<Answer> Create(Tuner& tuner, const Request& request) {
  ESPALIER_ASSIGN_OR_RETURN(const Json body, Body(request));
  ESPALIER_ASSIGN_OR_RETURN(StudySpec spec, SpecFrom(body));
  const Reply reply = tuner.Post(CreateStudy{std::move(spec), false});
  ESPALIER_RETURN_IF_ERROR(NameTaken(reply.status));
  ESPALIER_ASSIGN_OR_RETURN(const StudyHead study, ReadHead(tuner, reply.study()));
  return Answer{201, absl::StrCat("{\"study_summary\":", SummaryJson(study), "}")};
}

absl::StatusOr<Answer> Rename(Tuner& tuner, const Request& request) {
  ESPALIER_ASSIGN_OR_RETURN(const StudyId id, StudyIn(request));
  ESPALIER_ASSIGN_OR_RETURN(const Json body, Body(request));
  ESPALIER_ASSIGN_OR_RETURN(const std::string name, NameIn(body));
  ESPALIER_ASSIGN_OR_RETURN(const StudyHead before, ReadHead(tuner, id));
  // The pool's studies keep their names, whatever is asked for.
  if (before.spec.by_clients()) {
    ESPALIER_RETURN_IF_ERROR(StudyOfClients(name, before.spec.directions).status());
  }
  ESPALIER_RETURN_IF_ERROR(NameTaken(tuner.Post(RenameStudy{id, name}).status));
  ESPALIER_ASSIGN_OR_RETURN(const StudyHead after, ReadHead(tuner, id));
  return Answer{201, SummaryJson(after)};
}

std::vector<std::string> ArtifactIds(const StudyCopy& study) {
  std::vector<std::string> ids;
  const Texts& of_study = study.head.attributes.system;
  for (const Artifact& artifact : ArtifactsOf(of_study)) ids.push_back(artifact.id);
  for (const TrialCopy& trial : study.trials) {
    for (const Artifact& artifact : ArtifactsOf(of_study, trial)) ids.push_back(artifact.id);
  }
  return ids;
}

absl::StatusOr<Answer> Delete(Tuner& tuner, const ArtifactFolder& artifacts,
                              const Request& request) {
  ESPALIER_ASSIGN_OR_RETURN(const StudyId id, StudyIn(request));
  ESPALIER_ASSIGN_OR_RETURN(const Json body, Body(request));
  std::vector<std::string> files;
  if (artifacts.available() && body.value("remove_associated_artifacts", Json(true)) != false) {
    ESPALIER_ASSIGN_OR_RETURN(const StudyCopy study, ReadStudy(tuner, id, 0));
    files = ArtifactIds(study);
  }
  // A study that must stay keeps its files.
  ESPALIER_RETURN_IF_ERROR(tuner.Post(DeleteStudy{id}).status);
  for (const std::string& file : files) {
    const absl::Status status = artifacts.Remove(file);
    if (!status.ok() && !absl::IsNotFound(status)) return status;
  }
  return NoContent();
}

absl::StatusOr<std::int64_t> AfterIn(const Request& request) {
  if (!request.has_param("after")) return 0;
  const std::string text = request.get_param_value("after");
  std::int64_t after = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), after);
  if (error == std::errc() && end == text.data() + text.size() && after >= 0) return after;
  return absl::InvalidArgumentError("`after` should be larger or equal 0.");
}

absl::StatusOr<Answer> Detail(Tuner& tuner, const Request& request) {
  ESPALIER_ASSIGN_OR_RETURN(const StudyId id, StudyIn(request));
  ESPALIER_ASSIGN_OR_RETURN(const std::int64_t after, AfterIn(request));
  ESPALIER_ASSIGN_OR_RETURN(const StudyCopy study, ReadStudy(tuner, id, after));
  const Texts& attributes = study.head.attributes.system;
  DrawnParameters parameters(study);
  const StudyDigest digest = Digest(study.trials, parameters);
  const std::vector<std::int64_t> best = IsPreferential(attributes)
                                             ? PreferredTrials(attributes, study.trials)
                                             : BestTrials(study.trials, study.head.spec.directions);
  std::vector<TrialCopy> best_trials;
  for (const std::int64_t number : best) {
    const TrialCopy& trial = study.trials[static_cast<std::size_t>(number)];
    if (number >= after) {
      best_trials.push_back(trial);
      continue;
    }
    // It was read without its reports.
    absl::StatusOr<TrialCopy> whole = ReadTrial(tuner, trial.id);
    best_trials.push_back(whole.ok() ? *std::move(whole) : trial);
  }
  return Answer{200, DetailJson(study, after, digest, best_trials, parameters)};
}

absl::StatusOr<Answer> ParameterImportances(Tuner& tuner, const Request& request) {
  ESPALIER_ASSIGN_OR_RETURN(const StudyId id, StudyIn(request));
  ESPALIER_ASSIGN_OR_RETURN(const StudyCopy study,
                            ReadStudy(tuner, id, std::numeric_limits<std::int64_t>::max()));
  DrawnParameters parameters(study);
  std::vector<std::vector<Importance>> by_objective;
  for (std::size_t i = 0; i < study.head.spec.directions.size(); ++i) {
    by_objective.push_back(Importances(study, parameters, i));
  }
  return Answer{200, ImportancesJson(by_objective)};
}

absl::StatusOr<Answer> Table(Tuner& tuner, const Request& request) {
  ESPALIER_ASSIGN_OR_RETURN(const StudyId id, StudyIn(request));
  std::vector<std::int64_t> numbers;
  const std::string wanted = request.get_param_value("trial_ids");
  for (const absl::string_view word : absl::StrSplit(wanted, ',', absl::SkipEmpty())) {
    std::int64_t number = 0;
    const absl::string_view digits = absl::StripAsciiWhitespace(word);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error != std::errc() || end != digits.data() + digits.size()) {
      return absl::InvalidArgumentError(
          "Invalid trial_ids format. Expected comma-separated integers");
    }
    numbers.push_back(number);
  }
  ESPALIER_ASSIGN_OR_RETURN(const StudyCopy study, ReadStudy(tuner, id, 0));
  DrawnParameters parameters(study);
  ESPALIER_ASSIGN_OR_RETURN(std::string csv, TrialTable(study, numbers, parameters));
  return Answer{
      200,
      std::move(csv),
      "text/csv; charset=utf-8",
      {{"Content-Disposition", "attachment; filename=" + TrialTableName(study.head.spec.name)}}};
}

}  // namespace

void Dashboard::Listener::AddStudies(httplib::Server& server) {
  server.Get("/api/studies/?",
             Route("studies", [this](const Request&) { return Summaries(tuner); }));
  server.Post("/api/studies/?",
              Route("create_study", [this](const Request& r) { return Create(tuner, r); }));
  server.Post("/api/studies/([0-9]+)/rename/?",
              Route("rename_study", [this](const Request& r) { return Rename(tuner, r); }));
  server.Delete("/api/studies/([0-9]+)/?", Route("delete_study", [this](const Request& r) {
                  return Delete(tuner, artifacts, r);
                }));
  server.Get("/api/studies/([0-9]+)/?",
             Route("study", [this](const Request& r) { return Detail(tuner, r); }));
  server.Get(
      "/api/studies/([0-9]+)/param_importances/?",
      Route("importances", [this](const Request& r) { return ParameterImportances(tuner, r); }));
  server.Get("/api/studies/([0-9]+)/plot/([a-z_]+)/?",
             Route("plot", [](const Request&) -> absl::StatusOr<Answer> {
               return absl::NotFoundError("plots are drawn by the browser, not by this server");
             }));
  server.Get("/csv/([0-9]+)/?", Route("csv", [this](const Request& r) { return Table(tuner, r); }));
}

}  // namespace espalier::optuna_dashboard
