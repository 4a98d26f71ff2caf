#pragma once

#include <functional>
#include <string>

#include "base/status.h"
#include "tuner/cli/exit_codes.h"
#include "tuner/cli/options/command.h"

namespace espalier {

// What a verb does once its options are parsed.
using VerbAction = std::function<ExitCode()>;

// A command of a verb that has several, such as `tuner db check`.
template <typename Arguments>
struct VerbPart {
  CliCommand* command;
  absl::StatusOr<ExitCode> (*action)(const Arguments&);
};

// One verb of `tuner`: a row of the table in main.cc.
struct Verb {
  const char* name;
  const char* purpose;  // one line
  const char* example;  // command lines
  // Adds the verb's arguments; what they hold lives as long as the action returned.
  VerbAction (*add)(CliCommand& command);
};

// Prints "tuner VERB: message" to stderr and gives the code back.
ExitCode Fail(const std::string& verb, ExitCode code, const std::string& message);
ExitCode Fail(const std::string& verb, const absl::Status& status);

VerbAction AddInit(CliCommand& command);
VerbAction AddRun(CliCommand& command);
VerbAction AddServe(CliCommand& command);
VerbAction AddAgent(CliCommand& command);
VerbAction AddSubmit(CliCommand& command);
VerbAction AddList(CliCommand& command);
VerbAction AddShow(CliCommand& command);
VerbAction AddWatch(CliCommand& command);
VerbAction AddOpen(CliCommand& command);
VerbAction AddStop(CliCommand& command);
VerbAction AddResume(CliCommand& command);
VerbAction AddRemove(CliCommand& command);
VerbAction AddPin(CliCommand& command);
VerbAction AddCancel(CliCommand& command);
VerbAction AddClone(CliCommand& command);
VerbAction AddLogs(CliCommand& command);
VerbAction AddExport(CliCommand& command);
VerbAction AddReport(CliCommand& command);
VerbAction AddTell(CliCommand& command);
VerbAction AddSimulate(CliCommand& command);
VerbAction AddPool(CliCommand& command);
VerbAction AddDrain(CliCommand& command);
VerbAction AddTokens(CliCommand& command);
VerbAction AddConnect(CliCommand& command);
VerbAction AddDb(CliCommand& command);
VerbAction AddSpace(CliCommand& command);
VerbAction AddPlugins(CliCommand& command);
VerbAction AddCompletion(CliCommand& command);
VerbAction AddHelp(CliCommand& command);
VerbAction AddVersion(CliCommand& command);

}  // namespace espalier
