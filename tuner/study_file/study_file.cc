#include "tuner/study_file/study_file.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/json/parse_json.h"
#include "search_spaces/json_text.h"
#include "tuner/study_file/adaptdl_job.h"
#include "tuner/study_file/study_search_space.h"
#include "tuner/study_file/text_file.h"
#include "tuner/study_file/wording.h"
#include "tuner/study_file/yaml_text.h"

namespace espalier {

namespace {

using search_spaces_json::Json;

// The file as it is, but for a job, which has become a study.
absl::StatusOr<StudyForService> ReadText(const std::string& path) {
  absl::StatusOr<std::string> text = ReadTextFile(path);
  if (!text.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("study file ", path, ": ", std::string(text.status().message()),
                     "; give the path of a study file, an object in JSON or YAML with at least "
                     "\"command\" and \"search_space\""));
  }
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  if (error) {
    return absl::InvalidArgumentError(
        absl::StrCat("study file ", path, ": no current folder: ", error.message()));
  }
  const std::string folder = absolute.lexically_normal().parent_path().string();
  if (!IsYamlFile(path)) {
    ESPALIER_ASSIGN_OR_RETURN(std::string json, JsonInFile(*text, path));
    return StudyForService{std::move(json), folder, {}};
  }
  YamlDocument document = ReadYaml(*text, path);
  if (document.has_api_version) {
    ESPALIER_ASSIGN_OR_RETURN(AdaptDLJob job, ReadAdaptDLJob(*text, path));
    return StudyForService{std::move(job.study_json), folder, std::move(job.unused)};
  }
  ESPALIER_ASSIGN_OR_RETURN(std::string json, std::move(document.json));
  return StudyForService{std::move(json), folder, {}};
}

}  // namespace

absl::StatusOr<StudySpec> ReadStudyFile(const std::string& path, std::vector<std::string>* unused) {
  ESPALIER_ASSIGN_OR_RETURN(StudyForService file, ReadText(path));
  if (unused != nullptr) *unused = std::move(file.unused);
  return ParseStudy(file.json, path, file.folder);
}

absl::StatusOr<StudyForService> ReadForService(const std::string& path) {
  ESPALIER_ASSIGN_OR_RETURN(StudyForService file, ReadText(path));
  ESPALIER_ASSIGN_OR_RETURN(Json json, search_spaces_json::Parse(path, file.json));
  const auto space = json.is_object() ? json.find("search_space") : json.end();
  if (space == json.end() || !space->is_string()) return file;
  ESPALIER_ASSIGN_OR_RETURN(
      const SearchSpace read,
      SearchSpaceOfFile(path, file.folder, space->get<std::string>(), SpaceFiles::kRead));
  *space = ParseJson<Json>(read.ToJson(), kMaxRecordDepth);
  file.json = json.dump();
  ESPALIER_RETURN_IF_ERROR(CheckTextSize(file.json, path));
  return file;
}

absl::StatusOr<StudySpec> WithWording(const StudySpec& spec, std::string_view label) {
  ESPALIER_RETURN_IF_ERROR(CheckStudySize(spec, label));
  ESPALIER_ASSIGN_OR_RETURN(StudySpec read, ParseStudy(WriteStudy(spec), std::string(label), "/"));
  if (read == spec) return read;
  std::string keys;
  for (const KeyDifference& differs : DifferencesOf(spec, read)) {
    absl::StrAppend(&keys, keys.empty() ? ", with another \"" : "\", \"", differs.key);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(std::string(label), ": would be read back from its study file as another study",
                   keys, keys.empty() ? "" : "\""));
}

absl::Status CheckReadBack(const StudySpec& spec, std::string_view label) {
  return WithWording(spec, label).status();
}

absl::StatusOr<StudySpec> StudyOfClients(std::string name, std::vector<Direction> directions) {
  StudySpec spec;
  spec.name = std::move(name);
  spec.directory = "/";
  spec.kind = StudyKind::kByClients;
  spec.directions = std::move(directions);
  return WithWording(spec, "study");
}

}  // namespace espalier
