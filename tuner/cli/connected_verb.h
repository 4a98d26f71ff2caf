#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "tuner/base/status.h"
#include "tuner/cli/client.h"
#include "tuner/cli/exit_codes.h"
#include "tuner/cli/service_options.h"
#include "tuner/cli/study_source.h"

namespace espalier {

// What verbs have in common that talk to a service or read its studies.

// The name of a study, as the verb's first argument.
void AddStudyName(CLI::App& app, std::string& name);

// The number of a trial, as its next one.
CLI::Option* AddTrialNumber(CLI::App& app, std::int64_t& number);

// Runs `action` on a connection to the service. What goes wrong is printed in the verb's name, and
// becomes its exit code.
ExitCode WithClient(const std::string& verb, const ServiceArguments& service,
                    const std::function<absl::StatusOr<ExitCode>(Client&)>& action);

// The same for a verb that only reads, from a service or from a database file.
ExitCode WithSource(const std::string& verb, const SourceArguments& source,
                    const std::function<absl::Status(StudySource&)>& action);

}  // namespace espalier
