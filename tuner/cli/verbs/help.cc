// `tuner help`: what `tuner --help` or `tuner COMMAND --help` shows.

#include "tuner/cli/help.h"

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tuner/cli/verb.h"

namespace espalier {
namespace {

// nullptr: it has none of that name.
const CLI::App* CommandOf(const CLI::App& app, const std::string& name) {
  const std::vector<const CLI::App*> named =
      app.get_subcommands([&name](const CLI::App* command) { return command->get_name() == name; });
  return named.empty() ? nullptr : named.front();
}

ExitCode ShowHelp(const CLI::App& tuner, const std::vector<std::string>& words) {
  const CLI::App* command = &tuner;
  std::string who = tuner.get_name();
  for (const std::string& word : words) {
    const CLI::App* inner = CommandOf(*command, word);
    if (inner == nullptr) {
      return Fail("help", ExitCode::kBadInput, UnknownWord(*command, word));
    }
    command = inner;
    who += " " + word;
  }
  const std::string text =
      command->get_formatter()->make_help(command, who, CLI::AppFormatMode::Normal);
  std::fputs(text.c_str(), stdout);
  return ExitCode::kOk;
}

}  // namespace

VerbAction AddHelp(CLI::App& app) {
  auto words = std::make_shared<std::vector<std::string>>();
  app.add_option("command", *words, "A command, and perhaps one of its own, such as: db check")
      ->type_name("COMMAND");
  return [&app, words] { return ShowHelp(*app.get_parent(), *words); };
}

}  // namespace espalier
