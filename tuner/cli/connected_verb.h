#pragma once

#include <functional>
#include <string>

#include "base/status.h"
#include "google/protobuf/message.h"
#include "tuner/cli/client.h"
#include "tuner/cli/exit_codes.h"
#include "tuner/cli/options/command.h"
#include "tuner/cli/options/service_options.h"
#include "tuner/cli/study_source.h"

namespace espalier {

// What the verbs that talk to a service or read its studies have in common.

// The name of a study, as the verb's first argument.
void AddStudyName(CliCommand& command, std::string& name);

// The number of a trial, as the verb's next argument.
CliOption& AddTrialNumber(CliCommand& command, std::int64_t& number);

// --json, with which the verb prints a message of the API as JSON. `source` completes the option's
// help: what else gives that JSON.
void AddJson(CliCommand& command, bool& as_json, const std::string& source);
void PrintMessage(const google::protobuf::Message& message);

// Runs `action` on a connection to the service. An error is printed in the verb's name, and gives
// the exit code. The first also takes a run of this folder (local_runs.h), which it writes into
// `service`: that of this study, if the verb is about one.
ExitCode WithClient(const std::string& verb, const std::string& study, ServiceArguments& service,
                    const std::function<absl::StatusOr<ExitCode>(Client&)>& action);
ExitCode WithClient(const std::string& verb, const ServiceArguments& service,
                    const std::function<absl::StatusOr<ExitCode>(Client&)>& action);

// Does it for a verb that only reads, from a service, from a run of this folder, which may have
// ended, or from a database file.
ExitCode WithSource(const std::string& verb, const std::string& study, SourceArguments& source,
                    const std::function<absl::Status(StudySource&)>& action);

}  // namespace espalier
