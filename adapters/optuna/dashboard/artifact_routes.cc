// Files of studies and trials.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "adapters/optuna/dashboard/attributes.h"
#include "adapters/optuna/dashboard/listener.h"
#include "adapters/optuna/dashboard/python_text.h"
#include "adapters/optuna/dashboard/study_json.h"
#include "tuner/api/json.h"

namespace espalier::optuna_dashboard {

namespace {

using Request = httplib::Request;

constexpr char kId[] = "([0-9a-fA-F-]+)";

struct Upload {
  Artifact artifact;
  std::string content;
};

absl::StatusOr<Upload> UploadFrom(const Request& request) {
  // Larger than other bodies may be, so not by the reader that names keys and lines.
  const Json body = Json::parse(request.body, nullptr, false);
  if (!body.is_object() || !body.contains("file") || !body["file"].is_string()) {
    return absl::InvalidArgumentError("Please specify the 'file' key.");
  }
  Upload upload;
  ESPALIER_ASSIGN_OR_RETURN(upload.content, DataOfUri(body["file"].get<std::string>()));
  if (upload.content.size() > kMaxArtifactBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the file has more than ", kMaxArtifactBytes, " bytes"));
  }
  const Json name = body.value("filename", Json(""));
  upload.artifact.filename = name.is_string() ? name.get<std::string>() : "";
  upload.artifact.id = NewUuid();
  upload.artifact.mimetype = MimeType(upload.artifact.filename, upload.artifact.encoding);
  return upload;
}

Answer Created(const Artifact& artifact, const std::vector<Artifact>& all) {
  return {201, absl::StrCat("{\"artifact_id\":", QuoteJson(artifact.id),
                            ",\"artifacts\":", ArtifactsJson(all), "}")};
}

absl::StatusOr<Answer> Content(const ArtifactFolder& folder, const std::vector<Artifact>& artifacts,
                               const std::string& id) {
  const auto it = std::find_if(artifacts.begin(), artifacts.end(),
                               [&](const Artifact& artifact) { return artifact.id == id; });
  if (it == artifacts.end()) return absl::NotFoundError("Not Found");
  ESPALIER_ASSIGN_OR_RETURN(std::string content, folder.Read(id));
  // Somebody's page runs as a stranger, not with the rights of this site.
  httplib::Headers headers = {{"Access-Control-Allow-Origin", "*"},
                              {"X-Content-Type-Options", "nosniff"},
                              {"Content-Security-Policy", "sandbox allow-scripts"}};
  if (!it->encoding.empty()) headers.emplace("Content-Encoding", it->encoding);
  return Answer{200, std::move(content), it->mimetype, std::move(headers)};
}

}  // namespace

void Dashboard::Listener::AddArtifacts(httplib::Server& server) {
  const auto need_folder = [this]() {
    return artifacts.available() ? absl::OkStatus()
                                 : absl::InvalidArgumentError("Cannot access to the artifacts.");
  };
  // The trial, if it is the study's.
  const auto trial_in = [this](const Request& request) -> absl::StatusOr<ShownTrial> {
    ESPALIER_ASSIGN_OR_RETURN(const std::int64_t study, IdInPath(request, 1, "study_id"));
    ESPALIER_ASSIGN_OR_RETURN(const std::int64_t trial, IdInPath(request, 2, "trial_id"));
    ESPALIER_ASSIGN_OR_RETURN(ShownTrial shown, ReadTrial(tuner, TrialId(trial)));
    if (shown.study != StudyId(study)) {
      return absl::NotFoundError(absl::StrCat("study_id=", study, " has no trial ", trial));
    }
    return shown;
  };
  const auto head_in = [this](const Request& request) -> absl::StatusOr<StudyHead> {
    ESPALIER_ASSIGN_OR_RETURN(const std::int64_t study, IdInPath(request, 1, "study_id"));
    return ReadHead(tuner, StudyId(study));
  };

  const std::string of_study = "/([0-9]+)";
  const std::string of_trial = "/([0-9]+)/([0-9]+)";
  server.Get("/artifacts" + of_trial + "/" + kId,
             Route("artifact", [=, this](const Request& request) -> absl::StatusOr<Answer> {
               ESPALIER_RETURN_IF_ERROR(need_folder());
               ESPALIER_ASSIGN_OR_RETURN(const StudyHead head, head_in(request));
               ESPALIER_ASSIGN_OR_RETURN(const ShownTrial trial, trial_in(request));
               return Content(artifacts, ArtifactsOf(head.attributes.system, trial),
                              request.matches[3]);
             }));
  server.Get("/artifacts" + of_study + "/" + kId,
             Route("artifact", [=, this](const Request& request) -> absl::StatusOr<Answer> {
               ESPALIER_RETURN_IF_ERROR(need_folder());
               ESPALIER_ASSIGN_OR_RETURN(const StudyHead head, head_in(request));
               return Content(artifacts, ArtifactsOf(head.attributes.system), request.matches[2]);
             }));

  server.Post("/api/artifacts" + of_trial + "/?",
              Route("upload", [=, this](const Request& request) -> absl::StatusOr<Answer> {
                ESPALIER_RETURN_IF_ERROR(need_folder());
                ESPALIER_ASSIGN_OR_RETURN(const StudyHead head, head_in(request));
                ESPALIER_ASSIGN_OR_RETURN(ShownTrial trial, trial_in(request));
                if (Ended(trial.state)) {
                  return absl::InvalidArgumentError("The trial is already finished.");
                }
                ESPALIER_ASSIGN_OR_RETURN(const Upload upload, UploadFrom(request));
                ESPALIER_RETURN_IF_ERROR(artifacts.Write(upload.artifact.id, upload.content));
                const std::string key = ArtifactKey(upload.artifact.id);
                const std::string json = QuoteJson(ArtifactJson(upload.artifact));
                ESPALIER_RETURN_IF_ERROR(Post(SetTrialAttribute{trial.id, true, key, json}));
                trial.attributes.system[key] = json;
                return Created(upload.artifact, ArtifactsOf(head.attributes.system, trial));
              }));
  server.Post("/api/artifacts" + of_study + "/?",
              Route("upload", [=, this](const Request& request) -> absl::StatusOr<Answer> {
                ESPALIER_RETURN_IF_ERROR(need_folder());
                ESPALIER_ASSIGN_OR_RETURN(StudyHead head, head_in(request));
                ESPALIER_ASSIGN_OR_RETURN(const Upload upload, UploadFrom(request));
                ESPALIER_RETURN_IF_ERROR(artifacts.Write(upload.artifact.id, upload.content));
                const std::string key = ArtifactKey(upload.artifact.id);
                const std::string json = QuoteJson(ArtifactJson(upload.artifact));
                ESPALIER_RETURN_IF_ERROR(SetSystem(head.id, key, json));
                head.attributes.system[key] = json;
                return Created(upload.artifact, ArtifactsOf(head.attributes.system));
              }));

  const std::string removed(kRemovedArtifact);
  server.Delete(
      "/api/artifacts" + of_trial + "/" + kId + "/?",
      Route("remove_artifact", [=, this](const Request& request) -> absl::StatusOr<Answer> {
        ESPALIER_RETURN_IF_ERROR(need_folder());
        ESPALIER_ASSIGN_OR_RETURN(const StudyHead head, head_in(request));
        ESPALIER_ASSIGN_OR_RETURN(const ShownTrial trial, trial_in(request));
        const std::string id = request.matches[3];
        ESPALIER_RETURN_IF_ERROR(artifacts.Remove(id));
        ESPALIER_RETURN_IF_ERROR(SetSystem(head.id, RemovedArtifactKey(trial.id, id), removed));
        // An ended trial's attributes stay; that its file is gone is known from here.
        const absl::Status set = Post(SetTrialAttribute{trial.id, true, ArtifactKey(id), removed});
        if (!set.ok() && !absl::IsFailedPrecondition(set)) return set;
        return NoContent();
      }));
  server.Delete(
      "/api/artifacts" + of_study + "/" + kId + "/?",
      Route("remove_artifact", [=, this](const Request& request) -> absl::StatusOr<Answer> {
        ESPALIER_RETURN_IF_ERROR(need_folder());
        ESPALIER_ASSIGN_OR_RETURN(const StudyHead head, head_in(request));
        const std::string id = request.matches[2];
        ESPALIER_RETURN_IF_ERROR(artifacts.Remove(id));
        ESPALIER_RETURN_IF_ERROR(SetSystem(head.id, ArtifactKey(id), removed));
        return NoContent();
      }));
}

}  // namespace espalier::optuna_dashboard
