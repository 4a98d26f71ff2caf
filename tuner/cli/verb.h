#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "tuner/base/status.h"
#include "tuner/cli/exit_codes.h"

namespace espalier {

// What a verb does once its options are parsed.
using VerbAction = std::function<ExitCode()>;

// A command of a verb that has several, such as `tuner db check`.
template <typename Arguments>
struct VerbPart {
  CLI::App* app;
  absl::StatusOr<ExitCode> (*action)(const Arguments&);
};

// One verb of `tuner`: a row of the table in main.cc.
struct Verb {
  const char* name;
  const char* purpose;  // one line
  const char* example;  // command lines
  // Adds the verb's arguments; what they hold lives as long as the action returned.
  VerbAction (*add)(CLI::App& app);
};

// Prints "tuner VERB: message" to stderr and gives the code back.
ExitCode Fail(const std::string& verb, ExitCode code, const std::string& message);
ExitCode Fail(const std::string& verb, const absl::Status& status);

VerbAction AddRun(CLI::App& app);
VerbAction AddServe(CLI::App& app);
VerbAction AddAgent(CLI::App& app);
VerbAction AddSubmit(CLI::App& app);
VerbAction AddList(CLI::App& app);
VerbAction AddShow(CLI::App& app);
VerbAction AddWatch(CLI::App& app);
VerbAction AddStop(CLI::App& app);
VerbAction AddResume(CLI::App& app);
VerbAction AddRemove(CLI::App& app);
VerbAction AddPin(CLI::App& app);
VerbAction AddCancel(CLI::App& app);
VerbAction AddLogs(CLI::App& app);
VerbAction AddExport(CLI::App& app);
VerbAction AddReport(CLI::App& app);
VerbAction AddTell(CLI::App& app);
VerbAction AddSimulate(CLI::App& app);
VerbAction AddPool(CLI::App& app);
VerbAction AddDrain(CLI::App& app);
VerbAction AddTokens(CLI::App& app);
VerbAction AddConnect(CLI::App& app);
VerbAction AddDb(CLI::App& app);
VerbAction AddSpace(CLI::App& app);
VerbAction AddPlugins(CLI::App& app);
VerbAction AddHelp(CLI::App& app);
VerbAction AddVersion(CLI::App& app);

}  // namespace espalier
