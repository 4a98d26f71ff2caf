#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace espalier {

// What help texts show in place of INT for the number of a trial.
inline constexpr const char* kTrialNumberType = "TRIAL";

// An option, a flag or an argument of a command, which owns it. What it holds is written when the
// command line is parsed. Calls can follow one another: each returns the option itself.
class CliOption {
 public:
  struct Impl;  // what the library of command lines has of it
  explicit CliOption(const Impl& impl);
  ~CliOption();
  CliOption(const CliOption&) = delete;
  CliOption& operator=(const CliOption&) = delete;

  CliOption& Required();
  CliOption& Needs(CliOption& other);
  CliOption& Excludes(CliOption& other);

  // How many values it takes at once.
  CliOption& Values(int least, int most);
  // It takes one value at a time, may be given several times, and keeps them all.
  CliOption& Repeated();

  // What its values must be. A check's name stands in the help text, beside the type.
  CliOption& OneOf(const std::vector<std::string>& values);
  CliOption& Between(int least, int most);
  CliOption& Between(double least, double most);
  CliOption& NonNegative();
  CliOption& Positive();
  // `problem` says what is wrong with a value; empty: nothing.
  CliOption& Check(const std::function<std::string(const std::string&)>& problem);

  // What the help text shows: the default is the value that the variable has now, or this text;
  // options with a group stand below its heading, and with an empty one nowhere.
  CliOption& ShowDefault();
  CliOption& ShowDefault(const std::string& text);
  CliOption& TypeName(const std::string& name);
  CliOption& Group(const std::string& heading);
  CliOption& Describe(const std::string& help);

  // Whether the command line gave it.
  bool given() const;

 private:
  friend class CliCommand;
  std::unique_ptr<Impl> impl_;
};

// What a command line may say: the program, its commands, and theirs, each with options. A command
// owns its commands and options; the variables of the options are borrowed until the line is
// parsed, and those of ShowDefault until then, too. Names are as on the command line: "--dir",
// "-n,--lines"; without a dash they are arguments, taken in the order in which they were added. For
// one thread.
//
// No template and no header of the library of command lines reaches those who include this: the
// library is the most expensive header of the whole program.
class CliCommand {
 public:
  struct Impl;  // what the library has of it
  // The program. Help texts are wrapped to so many columns; 0: not at all, as for a pipe.
  CliCommand(const std::string& name, const std::string& purpose, std::size_t help_width);
  explicit CliCommand(std::unique_ptr<Impl> impl);  // for AddCommand
  ~CliCommand();
  CliCommand(const CliCommand&) = delete;
  CliCommand& operator=(const CliCommand&) = delete;

  // A new command begins with the footer and the formatting of this one.
  CliCommand* AddCommand(const std::string& name, const std::string& purpose);
  // One of the commands must be given, and only one.
  void RequireCommand();

  CliOption& AddFlag(const std::string& name, bool& value, const std::string& help = "");
  CliOption& AddOption(const std::string& name, std::string& value, const std::string& help = "");
  CliOption& AddOption(const std::string& name, int& value, const std::string& help);
  CliOption& AddOption(const std::string& name, std::int64_t& value, const std::string& help);
  CliOption& AddOption(const std::string& name, std::uint64_t& value, const std::string& help);
  CliOption& AddOption(const std::string& name, double& value, const std::string& help);
  CliOption& AddOption(const std::string& name, std::optional<int>& value, const std::string& help);
  CliOption& AddOption(const std::string& name, std::optional<std::int64_t>& value,
                       const std::string& help);
  CliOption& AddOption(const std::string& name, std::optional<double>& value,
                       const std::string& help);
  CliOption& AddOption(const std::string& name, std::vector<std::string>& values,
                       const std::string& help);
  // What is given goes to `take` instead of to a variable.
  CliOption& AddNumber(const std::string& name, const std::function<void(double)>& take,
                       const std::string& help);
  CliOption& AddWords(const std::string& name,
                      const std::function<void(const std::vector<std::string>&)>& take,
                      const std::string& help);
  void AddVersion(const std::string& name, const std::string& text, const std::string& help);
  // The option of that name, which must be there.
  CliOption& option(const std::string& name);

  // The heading below which the help text of the command above lists this one.
  void Group(const std::string& heading);
  // The end of the help text.
  void Footer(const std::string& text);
  void AppendToFooter(const std::string& text);

  const std::string& name() const;
  const CliCommand* parent() const;  // null: this is the program
  // The command of that name; null: there is none.
  const CliCommand* Find(const std::string& name) const;
  // `who` is the command as the user calls it: "tuner db check".
  std::string HelpText(const std::string& who) const;
  // That there is no such command or option, and which was probably meant.
  std::string UnknownWord(const std::string& word) const;

  // What the last of the words may become, for a shell: names of commands and options, and values
  // that an option can have. The others are what stands before it on the command line, without the
  // program. Empty: nothing that is known here, such as a file.
  std::vector<std::string> Completions(const std::vector<std::string>& words) const;

  enum class Outcome {
    kCommand,
    kShown
  };  // kShown: help or version are on stdout, and that is all
  // Parses the program's command line, once. Numbers are decimal digits and nothing else. What
  // cannot be parsed is InvalidArgument, in one line that begins with the program's name.
  absl::StatusOr<Outcome> Parse(int argc, const char* const* argv);
  // Whether the command line that was parsed named this command.
  bool parsed() const;

 private:
  CliOption& Add(const CliOption::Impl& option);

  std::unique_ptr<Impl> impl_;
};

}  // namespace espalier
