#include "tuner/cli/connected_verb.h"

#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tuner/api/json.h"
#include "tuner/cli/verb.h"

namespace espalier {

namespace {

namespace fs = std::filesystem;

constexpr const char* kRunsFolder = "espalier-runs";
constexpr std::size_t kRunsNamed = 3;

// The folders of this folder's runs, the newest first.
std::vector<std::string> FoldersOfRuns() {
  std::error_code error;
  std::multimap<fs::file_time_type, std::string, std::greater<>> runs;
  for (const fs::directory_entry& entry : fs::directory_iterator(kRunsFolder, error)) {
    const fs::path database = DatabasePath(entry.path().string());
    const fs::file_time_type written = fs::last_write_time(database, error);
    if (!error) runs.emplace(written, entry.path().string());
  }
  std::vector<std::string> folders;
  for (const auto& [written, folder] : runs) {
    if (folders.size() < kRunsNamed) folders.push_back(folder);
  }
  return folders;
}

// Whoever names no service may mean a `tuner run` of this folder.
absl::Status OrByFolder(const absl::Status& status, const ServiceArguments& service) {
  if (!absl::IsUnavailable(status) || service.named()) return status;
  const std::vector<std::string> folders = FoldersOfRuns();
  if (folders.empty()) return status;
  return absl::UnavailableError(absl::StrCat(std::string(status.message()),
                                             "; runs of this folder: --dir ",
                                             absl::StrJoin(folders, ", --dir ")));
}

}  // namespace

void AddStudyName(CliCommand& command, std::string& name) {
  command.AddOption("study", name, "Name of the study").Required().TypeName("STUDY");
}

CliOption& AddTrialNumber(CliCommand& command, std::int64_t& number) {
  return command.AddOption("trial", number, "Number of the trial")
      .Required()
      .TypeName(kTrialNumberType);
}

void AddJson(CliCommand& command, bool& as_json, const std::string& source) {
  command.AddFlag("--json", as_json, "Print JSON, as " + source);
}

void PrintMessage(const google::protobuf::Message& message) {
  std::puts(MessageToJson(message).c_str());
}

ExitCode WithClient(const std::string& verb, const ServiceArguments& service,
                    const std::function<absl::StatusOr<ExitCode>(Client&)>& action) {
  const absl::StatusOr<ClientOptions> options = service.Resolve();
  if (!options.ok()) return Fail(verb, options.status());
  Client client(*options);
  const absl::StatusOr<ExitCode> code = action(client);
  return code.ok() ? *code : Fail(verb, OrByFolder(code.status(), service));
}

ExitCode WithSource(const std::string& verb, const SourceArguments& source,
                    const std::function<absl::Status(StudySource&)>& action) {
  const absl::StatusOr<std::unique_ptr<StudySource>> opened = source.Open();
  if (!opened.ok()) return Fail(verb, opened.status());
  const absl::Status status = action(**opened);
  return status.ok()
             ? ExitCode::kOk
             : Fail(verb, source.database.empty() ? OrByFolder(status, source.service) : status);
}

}  // namespace espalier
