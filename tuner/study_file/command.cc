#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tuner/study_file/study_file.h"

namespace espalier {

namespace {

bool IsProgram(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         access(path.c_str(), X_OK) == 0;
}

// As the agent resolves it: relative names are taken from the trial's directory.
std::string Below(const std::string& directory, const std::string& path) {
  return (std::filesystem::path(directory) / path).lexically_normal().string();
}

// Where a trial looks for programs: the folder of this executable comes first, which makes the
// examples built beside it callable by name.
std::string SearchPath(const StudySpec& spec) {
  std::string path = "/usr/local/bin:/usr/bin:/bin";
  if (const auto own = spec.environment.find("PATH"); own != spec.environment.end()) {
    path = own->second;
  } else if (const char* inherited = std::getenv("PATH"); inherited != nullptr) {
    path = inherited;
  }
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? path : absl::StrCat(self.parent_path().string(), ":", path);
}

absl::Status CheckPath(const std::string& name, const std::string& path) {
  if (IsProgram(path)) return absl::OkStatus();
  std::error_code error;
  const char* problem = "does not exist";
  if (std::filesystem::is_directory(path, error)) {
    problem = "is a folder, not a program";
  } else if (std::filesystem::exists(path, error)) {
    problem = "is not executable: chmod +x it, or start it by its interpreter";
  }
  return absl::InvalidArgumentError(absl::StrCat("command \"", name, "\": ", path, " ", problem));
}

}  // namespace

absl::Status CheckCommand(const StudySpec& spec) {
  std::error_code error;
  if (!std::filesystem::is_directory(spec.directory, error)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "directory \"", spec.directory, "\": is not a folder; the trials run there: create it, or ",
        "give another \"directory\" in the study file"));
  }
  if (spec.command.empty() || spec.command.front().empty()) {
    return absl::InvalidArgumentError("command: needs the program that a trial runs");
  }
  const std::string& name = spec.command.front();
  if (name.find('/') != std::string::npos) return CheckPath(name, Below(spec.directory, name));
  const std::string path = SearchPath(spec);
  const std::vector<std::string> folders = absl::StrSplit(path, ':');
  for (const std::string& folder : folders) {
    if (IsProgram(Below(Below(spec.directory, folder), name))) return absl::OkStatus();
  }
  if (std::filesystem::exists(Below(spec.directory, name), error)) {
    return absl::InvalidArgumentError(absl::StrCat("command \"", name,
                                                   "\": not found in PATH, but there is one in ",
                                                   spec.directory, ": write \"./", name, "\""));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("command \"", name, "\": not found in PATH (", path,
                   "); install it, or give its path, taken from ", spec.directory));
}

absl::Status CheckNeeds(const StudySpec& spec) {
  for (const auto& [file, remedy] : spec.needs) {
    std::error_code error;
    if (std::filesystem::exists(file, error)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("\"needs\": the trials read ", file, ", which is not there: ", remedy));
  }
  return absl::OkStatus();
}

}  // namespace espalier
