#include "tuner/cli/connected_verb.h"

#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "tuner/api/json.h"
#include "tuner/cli/local_runs.h"
#include "tuner/cli/verb.h"

namespace espalier {

namespace {

// Whoever names no service may mean a `tuner run` of this folder.
absl::Status OrByFolder(const absl::Status& status, const std::string& study,
                        const ServiceArguments& service) {
  if (service.named()) return status;
  const std::string runs = LocalRunsText();
  if (absl::IsUnavailable(status) && !runs.empty()) {
    return {status.code(),
            absl::StrCat(std::string(status.message()), "; runs of this folder: ", runs)};
  }
  std::error_code error;
  if (absl::IsNotFound(status) && !study.empty() &&
      std::filesystem::exists(DatabasePath(RunFolder(study)), error)) {
    return {status.code(),
            absl::StrCat(std::string(status.message()),
                         "; a run of this folder has that name: --dir ", RunFolder(study))};
  }
  return status;
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

ExitCode WithClient(const std::string& verb, const std::string& study, ServiceArguments& service,
                    const std::function<absl::StatusOr<ExitCode>(Client&)>& action) {
  TakeLocalRun(verb, study, RunsWanted::kUnderWay, service);
  return WithClient(verb, service, [&](Client& client) -> absl::StatusOr<ExitCode> {
    const absl::StatusOr<ExitCode> code = action(client);
    return code.ok() ? code : OrByFolder(code.status(), study, service);
  });
}

ExitCode WithClient(const std::string& verb, const ServiceArguments& service,
                    const std::function<absl::StatusOr<ExitCode>(Client&)>& action) {
  const absl::StatusOr<ClientOptions> options = service.Resolve();
  if (!options.ok()) return Fail(verb, options.status());
  Client client(*options);
  const absl::StatusOr<ExitCode> code = action(client);
  return code.ok() ? *code : Fail(verb, code.status());
}

ExitCode WithSource(const std::string& verb, const std::string& study, SourceArguments& source,
                    const std::function<absl::Status(StudySource&)>& action) {
  const bool of_a_service = source.database.empty();
  if (of_a_service) TakeLocalRun(verb, study, RunsWanted::kAll, source.service);
  const absl::StatusOr<std::unique_ptr<StudySource>> opened = source.Open();
  if (!opened.ok()) return Fail(verb, opened.status());
  const absl::Status status = action(**opened);
  if (status.ok()) return ExitCode::kOk;
  return Fail(verb, of_a_service ? OrByFolder(status, study, source.service) : status);
}

}  // namespace espalier
