#include "tuner/cli/options/command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "tuner/cli/options/help.h"
#include "tuner/cli/options/number_options.h"

namespace espalier {

struct CliOption::Impl {
  CLI::Option* option;                // the library's command owns it
  std::vector<std::string> values{};  // the only ones that it may have; empty: any
};

CliOption::CliOption(const Impl& impl) : impl_(std::make_unique<Impl>(impl)) {}

CliOption::~CliOption() = default;

CliOption& CliOption::Required() {
  impl_->option->required();
  return *this;
}

CliOption& CliOption::Needs(CliOption& other) {
  impl_->option->needs(other.impl_->option);
  return *this;
}

CliOption& CliOption::Excludes(CliOption& other) {
  impl_->option->excludes(other.impl_->option);
  return *this;
}

CliOption& CliOption::Values(int least, int most) {
  impl_->option->expected(least, most);
  return *this;
}

CliOption& CliOption::Repeated() {
  impl_->option->expected(1)->take_all();
  return *this;
}

CliOption& CliOption::OneOf(const std::vector<std::string>& values) {
  impl_->option->check(CLI::IsMember(std::vector<std::string>(values)));
  impl_->values = values;
  return *this;
}

CliOption& CliOption::Between(int least, int most) {
  impl_->option->check(CLI::Range(least, most));
  return *this;
}

CliOption& CliOption::Between(double least, double most) {
  impl_->option->check(CLI::Range(least, most));
  return *this;
}

CliOption& CliOption::NonNegative() {
  impl_->option->check(CLI::NonNegativeNumber);
  return *this;
}

CliOption& CliOption::Positive() {
  impl_->option->check(CLI::PositiveNumber);
  return *this;
}

CliOption& CliOption::Check(const std::function<std::string(const std::string&)>& problem) {
  impl_->option->check(problem);
  return *this;
}

CliOption& CliOption::ShowDefault() {
  impl_->option->capture_default_str();
  return *this;
}

CliOption& CliOption::ShowDefault(const std::string& text) {
  impl_->option->default_str(text);
  return *this;
}

CliOption& CliOption::TypeName(const std::string& name) {
  impl_->option->type_name(name);
  return *this;
}

CliOption& CliOption::Group(const std::string& heading) {
  impl_->option->group(heading);
  return *this;
}

CliOption& CliOption::Describe(const std::string& help) {
  impl_->option->description(help);
  return *this;
}

bool CliOption::given() const { return !impl_->option->empty(); }

struct CliCommand::Impl {
  std::unique_ptr<CLI::App> program;  // null for a command, which the one above owns
  CLI::App* app;
  const CliCommand* parent;
  std::vector<std::unique_ptr<CliCommand>> commands;
  std::vector<std::pair<const CLI::Option*, std::unique_ptr<CliOption>>> options;
};

CliCommand::CliCommand(const std::string& name, const std::string& purpose, std::size_t help_width)
    : impl_(std::make_unique<Impl>()) {
  impl_->program = std::make_unique<CLI::App>(purpose, name);
  impl_->app = impl_->program.get();
  impl_->parent = nullptr;
  impl_->app->formatter(HelpFormatter(help_width));
}

CliCommand::CliCommand(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

CliCommand::~CliCommand() = default;

CliCommand* CliCommand::AddCommand(const std::string& name, const std::string& purpose) {
  auto impl = std::make_unique<Impl>();
  impl->app = impl_->app->add_subcommand(name, purpose);
  impl->parent = this;
  impl_->commands.push_back(std::make_unique<CliCommand>(std::move(impl)));
  return impl_->commands.back().get();
}

void CliCommand::RequireCommand() { impl_->app->require_subcommand(1); }

CliOption& CliCommand::Add(const CliOption::Impl& option) {
  impl_->options.emplace_back(option.option, std::make_unique<CliOption>(option));
  return *impl_->options.back().second;
}

CliOption& CliCommand::AddFlag(const std::string& name, bool& value, const std::string& help) {
  return Add({impl_->app->add_flag(name, value, help)});
}

CliOption& CliCommand::AddOption(const std::string& name, std::string& value,
                                 const std::string& help) {
  return Add({impl_->app->add_option(name, value, help)});
}

CliOption& CliCommand::AddOption(const std::string& name, int& value, const std::string& help) {
  return Add({impl_->app->add_option(name, value, help)});
}

CliOption& CliCommand::AddOption(const std::string& name, std::int64_t& value,
                                 const std::string& help) {
  return Add({impl_->app->add_option(name, value, help)});
}

CliOption& CliCommand::AddOption(const std::string& name, std::uint64_t& value,
                                 const std::string& help) {
  return Add({impl_->app->add_option(name, value, help)});
}

CliOption& CliCommand::AddOption(const std::string& name, double& value, const std::string& help) {
  return Add({impl_->app->add_option(name, value, help)});
}

CliOption& CliCommand::AddOption(const std::string& name, std::optional<int>& value,
                                 const std::string& help) {
  return Add({impl_->app->add_option(name, value, help)});
}

CliOption& CliCommand::AddOption(const std::string& name, std::optional<std::int64_t>& value,
                                 const std::string& help) {
  return Add({impl_->app->add_option(name, value, help)});
}

CliOption& CliCommand::AddOption(const std::string& name, std::optional<double>& value,
                                 const std::string& help) {
  return Add({impl_->app->add_option(name, value, help)});
}

CliOption& CliCommand::AddOption(const std::string& name, std::vector<std::string>& values,
                                 const std::string& help) {
  return Add({impl_->app->add_option(name, values, help)});
}

CliOption& CliCommand::AddNumber(const std::string& name, const std::function<void(double)>& take,
                                 const std::string& help) {
  return Add({impl_->app->add_option_function<double>(name, take, help)});
}

CliOption& CliCommand::AddWords(const std::string& name,
                                const std::function<void(const std::vector<std::string>&)>& take,
                                const std::string& help) {
  return Add({impl_->app->add_option_function<std::vector<std::string>>(name, take, help)});
}

void CliCommand::AddVersion(const std::string& name, const std::string& text,
                            const std::string& help) {
  impl_->app->set_version_flag(name, text, help);
}

CliOption& CliCommand::option(const std::string& name) {
  const CLI::Option* named = impl_->app->get_option(name);
  CliOption* found = nullptr;
  for (const auto& [option, ours] : impl_->options) {
    if (option == named) found = ours.get();
  }
  ESPALIER_CHECK(found != nullptr, name + " is not an option that was added");
  return *found;
}

void CliCommand::Group(const std::string& heading) { impl_->app->group(heading); }

void CliCommand::Footer(const std::string& text) { impl_->app->footer(text); }

void CliCommand::AppendToFooter(const std::string& text) {
  impl_->app->footer(impl_->app->get_footer() + text);
}

const std::string& CliCommand::name() const { return impl_->app->get_name(); }

const CliCommand* CliCommand::parent() const { return impl_->parent; }

const CliCommand* CliCommand::Find(const std::string& name) const {
  for (const std::unique_ptr<CliCommand>& command : impl_->commands) {
    if (command->name() == name) return command.get();
  }
  return nullptr;
}

std::string CliCommand::HelpText(const std::string& who) const {
  return impl_->app->get_formatter()->make_help(impl_->app, who, CLI::AppFormatMode::Normal);
}

std::string CliCommand::UnknownWord(const std::string& word) const {
  return espalier::UnknownWord(*impl_->app, word);
}

std::vector<std::string> CliCommand::Completions(const std::vector<std::string>& words) const {
  const CliCommand* command = this;
  const CLI::Option* open = nullptr;  // an option whose value is to come
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const CliCommand* inner = command->Find(words[i]);
    if (open == nullptr && inner != nullptr) {
      command = inner;
      continue;
    }
    const CLI::Option* named =
        words[i].starts_with('-') ? command->impl_->app->get_option_no_throw(words[i]) : nullptr;
    open = named != nullptr && named->get_items_expected_max() > 0 ? named : nullptr;
  }
  const std::string typed = words.empty() ? "" : words.back();
  std::vector<std::string> found;
  const auto offer = [&](const std::string& word) {
    if (word.starts_with(typed)) found.push_back(word);
  };
  if (open != nullptr) {
    for (const auto& [option, ours] : command->impl_->options) {
      if (option == open)
        std::for_each(ours->impl_->values.begin(), ours->impl_->values.end(), offer);
    }
  } else if (typed.starts_with('-')) {
    for (const CLI::Option* option : command->impl_->app->get_options()) {
      if (option->get_group().empty()) continue;  // shown nowhere
      for (const std::string& name : option->get_lnames()) offer("--" + name);
    }
  } else {
    for (const auto& inner : command->impl_->commands) offer(inner->name());
  }
  return found;
}

absl::StatusOr<CliCommand::Outcome> CliCommand::Parse(int argc, const char* const* argv) {
  CLI::App& app = *impl_->app;
  ReadNumbersAsDecimals(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != static_cast<int>(CLI::ExitCodes::Success)) {
      return absl::InvalidArgumentError(ParseProblem(app, error));
    }
    app.exit(error);
    return Outcome::kShown;
  }
  return Outcome::kCommand;
}

bool CliCommand::parsed() const { return impl_->app->parsed(); }

}  // namespace espalier
