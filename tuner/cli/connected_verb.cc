#include "tuner/cli/connected_verb.h"

#include <cstdio>
#include <memory>

#include "tuner/api/json.h"
#include "tuner/cli/number_options.h"
#include "tuner/cli/verb.h"

namespace espalier {

void AddStudyName(CLI::App& app, std::string& name) {
  app.add_option("study", name, "Name of the study")->required()->type_name("STUDY");
}

CLI::Option* AddTrialNumber(CLI::App& app, std::int64_t& number) {
  return app.add_option("trial", number, "Number of the trial")
      ->required()
      ->type_name(kTrialNumberType);
}

void AddJson(CLI::App& app, bool& as_json, const std::string& source) {
  app.add_flag("--json", as_json, "Print JSON, as " + source);
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
  return code.ok() ? *code : Fail(verb, code.status());
}

ExitCode WithSource(const std::string& verb, const SourceArguments& source,
                    const std::function<absl::Status(StudySource&)>& action) {
  const absl::StatusOr<std::unique_ptr<StudySource>> opened = source.Open();
  if (!opened.ok()) return Fail(verb, opened.status());
  const absl::Status status = action(**opened);
  return status.ok() ? ExitCode::kOk : Fail(verb, status);
}

}  // namespace espalier
