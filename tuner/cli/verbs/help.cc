// `tuner help`: what `tuner --help` or `tuner COMMAND --help` shows.

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tuner/cli/verb.h"

namespace espalier {
namespace {

ExitCode ShowHelp(const CliCommand& tuner, const std::vector<std::string>& words) {
  const CliCommand* command = &tuner;
  std::string who = tuner.name();
  for (const std::string& word : words) {
    const CliCommand* inner = command->Find(word);
    if (inner == nullptr) return Fail("help", ExitCode::kBadInput, command->UnknownWord(word));
    command = inner;
    who += " " + word;
  }
  std::fputs(command->HelpText(who).c_str(), stdout);
  return ExitCode::kOk;
}

}  // namespace

VerbAction AddHelp(CliCommand& command) {
  auto words = std::make_shared<std::vector<std::string>>();
  command.AddOption("command", *words, "A command, and perhaps one of its own, such as: db check")
      .TypeName("COMMAND");
  return [&command, words] { return ShowHelp(*command.parent(), *words); };
}

}  // namespace espalier
