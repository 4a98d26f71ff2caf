#include "tuner/study_file/study_file.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tuner/study_file/adaptdl_job.h"
#include "tuner/study_file/text_file.h"

namespace espalier {

absl::StatusOr<StudySpec> ReadStudyFile(const std::string& path, std::vector<std::string>* unused) {
  absl::StatusOr<std::string> text = ReadTextFile(path);
  if (!text.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("study file ", path, ": ", std::string(text.status().message()),
                     "; give the path of a study file, a JSON object with at least \"command\" ",
                     "and \"search_space\""));
  }
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  if (error) {
    return absl::InvalidArgumentError(
        absl::StrCat("study file ", path, ": no current folder: ", error.message()));
  }
  const std::string folder = absolute.lexically_normal().parent_path().string();
  const std::string suffix = absolute.extension().string();
  if (suffix != ".yaml" && suffix != ".yml") return ParseStudy(*text, path, folder);
  ESPALIER_ASSIGN_OR_RETURN(AdaptDLJob job, ReadAdaptDLJob(*text, path));
  if (unused != nullptr) *unused = std::move(job.unused);
  return ParseStudy(job.study_json, path, folder);
}

absl::Status CheckReadBack(const StudySpec& spec, std::string_view label) {
  ESPALIER_RETURN_IF_ERROR(CheckStudySize(spec, label));
  ESPALIER_ASSIGN_OR_RETURN(const StudySpec read,
                            ParseStudy(WriteStudy(spec), std::string(label), "/"));
  if (read == spec) return absl::OkStatus();
  std::string keys;
  for (const KeyDifference& differs : DifferencesOf(spec, read)) {
    absl::StrAppend(&keys, keys.empty() ? ", with another \"" : "\", \"", differs.key);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(std::string(label), ": would be read back from its study file as another study",
                   keys, keys.empty() ? "" : "\""));
}

absl::StatusOr<StudySpec> StudyOfClients(std::string name, std::vector<Direction> directions) {
  StudySpec spec;
  spec.name = std::move(name);
  spec.directory = "/";
  spec.kind = StudyKind::kByClients;
  spec.directions = std::move(directions);
  ESPALIER_RETURN_IF_ERROR(CheckReadBack(spec, "study"));
  return spec;
}

}  // namespace espalier
