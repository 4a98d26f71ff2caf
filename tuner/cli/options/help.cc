#include "tuner/cli/options/help.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>
#include <string_view>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/near_name.h"
#include "tuner/cli/options/number_options.h"
#include "tuner/cli/views/text.h"

namespace espalier {
namespace {

constexpr std::size_t kLeastDescriptionWidth = 30;

class WrappingFormatter : public CLI::Formatter {
 public:
  explicit WrappingFormatter(std::size_t width) {
    if (width == 0) return;
    const std::size_t left = width > get_column_width() ? width - get_column_width() : 0;
    description_width_ = std::max(left, kLeastDescriptionWidth);
  }

  std::string make_option_desc(const CLI::Option* option) const override {
    return Described(option->get_description());
  }

  std::string make_subcommand(const CLI::App* command) const override {
    std::stringstream out;
    CLI::detail::format_help(out, command->get_display_name(true),
                             Described(command->get_description()), get_column_width());
    return out.str();
  }

 private:
  // CLI11 indents what follows a line end.
  std::string Described(const std::string& text) const {
    if (description_width_ == 0) return text;
    return absl::StrJoin(Wrapped(text, description_width_), "\n");
  }

  std::size_t description_width_ = 0;
};

std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

std::vector<std::string> OptionNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// Empty, or what was probably meant.
std::string DidYouMean(const std::string& word, const std::vector<std::string>& known) {
  const std::vector<std::string_view> names(known.begin(), known.end());
  const std::string_view near = NearName(word, names);
  return near.empty() ? "" : absl::StrCat(", did you mean \"", std::string(near), "\"?");
}

std::string NotTheNumber(const CLI::App& app, const std::string& name, const std::string& value) {
  const CLI::Option* option = app.get_option_no_throw(name);
  const bool blank = absl::StripAsciiWhitespace(value).empty();
  return absl::StrCat(name, " ", blank ? absl::StrCat("\"", value, "\"") : value, ": must be ",
                      option == nullptr ? "a number" : WantedNumber(*option));
}

// CLI11's own text, where it does not read like the rest of ours.
std::string Reworded(const CLI::App& app, const std::string& text) {
  constexpr std::string_view kNotConverted = "Could not convert: ";
  if (text.starts_with(kNotConverted)) {
    const std::string rest = text.substr(kNotConverted.size());
    const std::string name = rest.substr(0, rest.find(" = "));
    return NotTheNumber(app, name, rest.substr(std::min(rest.size(), name.size() + 3)));
  }
  constexpr std::string_view kValue = ": Value ";
  const std::size_t value = text.find(kValue);
  const std::size_t range = text.find(" not in range ");
  if (value != std::string::npos && range != std::string::npos && value < range) {
    const std::size_t begin = value + kValue.size();
    return NotTheNumber(app, text.substr(0, value), text.substr(begin, range - begin));
  }
  const std::size_t set = text.find(" not in {");
  const std::size_t colon = text.find(": ");
  if (set == std::string::npos || colon == std::string::npos || colon > set) return text;
  std::string known = text.substr(set + 9);
  known.erase(known.find_last_not_of('}') + 1);
  std::replace(known.begin(), known.end(), ',', ' ');
  const std::vector<std::string> words = CLI::detail::split_up(known);
  return absl::StrCat(text.substr(0, colon), " ", text.substr(colon + 2, set - colon - 2),
                      ": must be one of ", absl::StrJoin(words, ", "));
}

}  // namespace

std::shared_ptr<CLI::Formatter> HelpFormatter(std::size_t width) {
  auto formatter = std::make_shared<WrappingFormatter>(width);
  formatter->label("SUBCOMMAND", "COMMAND");
  return formatter;
}

std::string UnknownWord(const CLI::App& app, const std::string& word) {
  const std::vector<std::string> commands = CommandNames(app);
  const bool option = word.starts_with('-');
  if (!option && commands.empty()) return absl::StrCat("unexpected argument \"", word, "\"");
  const std::string what =
      absl::StrCat(option ? "unknown option \"" : "unknown command \"", word, "\"");
  const std::string meant = DidYouMean(word, option ? OptionNames(app) : commands);
  if (!meant.empty()) return what + meant;
  return option ? what : absl::StrCat(what, "; the commands are ", absl::StrJoin(commands, ", "));
}

std::string ParseProblem(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* command = &app;
  std::string who = app.get_name();
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    absl::StrAppend(&who, " ", command->get_name());
  }
  std::string problem;
  // A misspelt word often makes a required one missing; the misspelt one is what to name.
  const std::vector<std::string> unknown = app.remaining(true);
  const std::vector<std::string> commands = CommandNames(*command);
  if (!unknown.empty()) {
    problem = UnknownWord(*command, unknown.front());
  } else if (!commands.empty() &&
             error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError)) {
    problem =
        absl::StrCat("a command is missing; the commands are ", absl::StrJoin(commands, ", "));
  } else {
    problem = Reworded(*command, error.what());
  }
  return absl::StrCat(who, ": ", problem, problem.ends_with('?') ? " See " : "; see ", who,
                      " --help");
}

}  // namespace espalier
