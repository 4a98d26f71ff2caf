// Files of studies and trials.

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "adapters/optuna/dashboard/attributes.h"
#include "adapters/optuna/dashboard/listener.h"
#include "adapters/optuna/dashboard/python_text.h"
#include "adapters/optuna/dashboard/study_json.h"
#include "base/json/parse_json.h"
#include "tuner/api/json.h"

namespace espalier::optuna_dashboard {

namespace {

using Listener = Dashboard::Listener;
using Request = httplib::Request;

constexpr char kId[] = "([0-9a-fA-F-]+)";

struct Upload {
  Artifact artifact;
  std::string content;
};

absl::StatusOr<Upload> UploadFrom(const Request& request) {
  // Larger than other bodies may be, so not by the reader that names keys and lines.
  ESPALIER_RETURN_IF_ERROR(CheckJsonDepth(request.body));
  const Json body = ParseJson<Json>(request.body);
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

// Whose files a request is about: a trial's, or those of the study itself.
struct Owner {
  StudyHead head;
  std::optional<TrialCopy> trial;
  std::string file;  // the id in the path; empty: none is in it

  Texts& attributes() { return trial ? trial->attributes.system : head.attributes.system; }
  std::vector<Artifact> Files() const {
    return trial ? ArtifactsOf(head.attributes.system, *trial)
                 : ArtifactsOf(head.attributes.system);
  }
};

constexpr char kOfStudy[] = "/([0-9]+)";
constexpr char kOfTrial[] = "/([0-9]+)/([0-9]+)";

absl::StatusOr<Owner> OwnerIn(Listener& listener, const Request& request, bool of_trial) {
  if (!listener.artifacts.available()) {
    return absl::InvalidArgumentError("Cannot access to the artifacts.");
  }
  Owner owner;
  ESPALIER_ASSIGN_OR_RETURN(const std::int64_t study, IdInPath(request, 1, "study_id"));
  ESPALIER_ASSIGN_OR_RETURN(owner.head, ReadHead(listener.tuner, StudyId(study)));
  const std::size_t ids = of_trial ? 2 : 1;
  if (request.matches.size() > ids + 1) owner.file = request.matches[ids + 1];
  if (!of_trial) return owner;
  ESPALIER_ASSIGN_OR_RETURN(const std::int64_t trial, IdInPath(request, 2, "trial_id"));
  ESPALIER_ASSIGN_OR_RETURN(owner.trial, ReadTrial(listener.tuner, TrialId(trial)));
  if (owner.trial->study != StudyId(study)) {
    return absl::NotFoundError(absl::StrCat("study_id=", study, " has no trial ", trial));
  }
  return owner;
}

absl::StatusOr<Answer> AddFile(Listener& listener, const Request& request, bool of_trial) {
  ESPALIER_ASSIGN_OR_RETURN(Owner owner, OwnerIn(listener, request, of_trial));
  if (owner.trial && Ended(owner.trial->state)) {
    return absl::InvalidArgumentError("The trial is already finished.");
  }
  ESPALIER_ASSIGN_OR_RETURN(const Upload upload, UploadFrom(request));
  ESPALIER_RETURN_IF_ERROR(listener.artifacts.Write(upload.artifact.id, upload.content));
  const std::string key = ArtifactKey(upload.artifact.id);
  const std::string json = QuoteJson(ArtifactJson(upload.artifact));
  ESPALIER_RETURN_IF_ERROR(owner.trial
                               ? listener.Post(SetTrialAttribute{owner.trial->id, true, key, json})
                               : listener.SetSystem(owner.head.id, key, json));
  owner.attributes()[key] = json;
  return Created(upload.artifact, owner.Files());
}

absl::StatusOr<Answer> RemoveFile(Listener& listener, const Request& request, bool of_trial) {
  ESPALIER_ASSIGN_OR_RETURN(const Owner owner, OwnerIn(listener, request, of_trial));
  const std::string removed(kRemovedArtifact);
  ESPALIER_RETURN_IF_ERROR(listener.artifacts.Remove(owner.file));
  if (!owner.trial) {
    ESPALIER_RETURN_IF_ERROR(listener.SetSystem(owner.head.id, ArtifactKey(owner.file), removed));
    return NoContent();
  }
  ESPALIER_RETURN_IF_ERROR(
      listener.SetSystem(owner.head.id, RemovedArtifactKey(owner.trial->id, owner.file), removed));
  // An ended trial's attributes stay; that its file is gone is known from here.
  const absl::Status set =
      listener.Post(SetTrialAttribute{owner.trial->id, true, ArtifactKey(owner.file), removed});
  if (!set.ok() && !absl::IsFailedPrecondition(set)) return set;
  return NoContent();
}

}  // namespace

void Dashboard::Listener::AddArtifacts(httplib::Server& server) {
  for (const bool of_trial : {true, false}) {
    const std::string owner = of_trial ? kOfTrial : kOfStudy;
    server.Get(
        absl::StrCat("/artifacts", owner, "/", kId),
        Route("artifact", [this, of_trial](const Request& request) -> absl::StatusOr<Answer> {
          ESPALIER_ASSIGN_OR_RETURN(const Owner of, OwnerIn(*this, request, of_trial));
          return Content(artifacts, of.Files(), of.file);
        }));
    server.Post(absl::StrCat("/api/artifacts", owner, "/?"),
                Route("upload", [this, of_trial](const Request& request) {
                  return AddFile(*this, request, of_trial);
                }));
    server.Delete(absl::StrCat("/api/artifacts", owner, "/", kId, "/?"),
                  Route("remove_artifact", [this, of_trial](const Request& request) {
                    return RemoveFile(*this, request, of_trial);
                  }));
  }
}

}  // namespace espalier::optuna_dashboard
