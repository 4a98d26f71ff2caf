#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/json/command_words.h"
#include "tuner/study_file/study_file.h"

namespace espalier {

namespace {

bool IsProgram(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         access(path.c_str(), X_OK) == 0;
}

// As the agent resolves it: relative names are taken from the trial's directory.
std::string Below(const std::string& directory, const std::string& path) {
  return (std::filesystem::path(directory) / path).lexically_normal().string();
}

// Where a trial looks for programs: the folder of this executable comes first, which makes the
// examples built beside it callable by name.
std::string SearchPath(const StudySpec& spec) {
  std::string path = "/usr/local/bin:/usr/bin:/bin";
  if (const auto own = spec.environment.find("PATH"); own != spec.environment.end()) {
    path = own->second;
  } else if (const char* inherited = std::getenv("PATH"); inherited != nullptr) {
    path = inherited;
  }
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? path : absl::StrCat(self.parent_path().string(), ":", path);
}

bool IsInPath(const StudySpec& spec, const std::string& name,
              const std::function<bool(const std::string& path)>& is_it) {
  const std::vector<std::string> folders = absl::StrSplit(SearchPath(spec), ':');
  return std::any_of(folders.begin(), folders.end(), [&](const std::string& folder) {
    return is_it(Below(Below(spec.directory, folder), name));
  });
}

// The system starts a script by the program that its first line names, and what it says of one that
// cannot be found is that the script does not exist.
absl::Status CheckFirstLine(const std::string& name, const std::string& path) {
  constexpr std::size_t kLongestRead = 256;
  std::string start(kLongestRead, '\0');
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::OkStatus();  // one may be executed without being read
  file.read(start.data(), kLongestRead);
  start.resize(static_cast<std::size_t>(file.gcount()));
  if (!start.starts_with("#!")) {
    // Programs have zero bytes near their beginning.
    if (file.bad() || start.find('\0') != std::string::npos) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("command \"", name, "\": ", path,
                     " is text without a first line such as #!/bin/sh, and "
                     "cannot be started: give it one, or start it by its interpreter"));
  }
  const std::size_t begin = start.find_first_not_of(" \t", 2);
  const std::size_t end = start.find_first_of(" \t\n", std::min(begin, start.size()));
  if (begin == std::string::npos || end == std::string::npos) return absl::OkStatus();
  const std::string interpreter = start.substr(begin, end - begin);
  std::error_code error;
  if (interpreter.empty() || interpreter.front() != '/' ||
      std::filesystem::exists(interpreter, error)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("command \"", name, "\": the first line of ", path, " names \"",
                   absl::CEscape(interpreter), "\", which is not there",
                   interpreter.back() == '\r' ? ": end its lines as on Linux, without \\r" : ""));
}

absl::Status CheckPath(const std::string& name, const std::string& path) {
  if (IsProgram(path)) return CheckFirstLine(name, path);
  std::error_code error;
  const char* problem = "does not exist";
  if (std::filesystem::is_directory(path, error)) {
    problem = "is a folder, not a program";
  } else if (std::filesystem::exists(path, error)) {
    problem = "is not executable: chmod +x it, or start it by its interpreter";
  }
  return absl::InvalidArgumentError(absl::StrCat("command \"", name, "\": ", path, " ", problem));
}

// Whether the first word of the command is found in its directory or PATH, and executable.
absl::Status CheckProgram(const StudySpec& spec) {
  std::error_code error;
  if (!std::filesystem::is_directory(spec.directory, error)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "directory \"", spec.directory, "\": is not a folder; the trials run there: create it, or ",
        "give another \"directory\" in the study file"));
  }
  if (spec.command.empty() || spec.command.front().empty()) {
    return absl::InvalidArgumentError("command: needs the program that a trial runs");
  }
  const std::string& name = spec.command.front();
  if (name.find('/') != std::string::npos) return CheckPath(name, Below(spec.directory, name));
  if (IsInPath(spec, name, IsProgram)) return absl::OkStatus();
  if (std::filesystem::exists(Below(spec.directory, name), error)) {
    return absl::InvalidArgumentError(absl::StrCat("command \"", name,
                                                   "\": not found in PATH, but there is one in ",
                                                   spec.directory, ": write \"./", name, "\""));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("command \"", name, "\": not found in PATH (", SearchPath(spec),
                   "); install it, or give its path, taken from ", spec.directory));
}

// A program that runs a script, and its options as far as they tell which word is the script.
struct Interpreter {
  std::string_view name;                     // up to a version, as in python3.11
  std::vector<std::string_view> instead;     // of a script: what to run is said otherwise
  std::vector<std::string_view> with_value;  // the next word is the option's value
  bool any_with_value = false;               // the next word may be the value of any option
};

const std::vector<Interpreter>& Interpreters() {
  static const auto* const all = new std::vector<Interpreter>{
      {"python", {"-c", "-m"}, {"-W", "-X", "--check-hash-based-pycs"}},
      {"pypy", {"-c", "-m"}, {"-W", "-X"}},
      {"sh", {"-c", "-s"}, {"-o", "+o"}},
      {"dash", {"-c", "-s"}, {"-o", "+o"}},
      {"bash", {"-c", "-s"}, {"-o", "+o", "-O", "+O", "--rcfile", "--init-file"}},
      {"zsh", {"-c", "-s"}, {"-o", "+o"}},
      {"perl", {"-e", "-E"}, {"-I"}},
      {"ruby", {"-e"}, {"-I", "-r"}},
      {"node", {"-e", "-p", "--eval", "--print"}, {"-r", "--require", "--import"}},
      {"Rscript", {"-e"}, {}},
      {"torchrun",
       {"-m", "--module", "--no-python", "--no_python", "--run-path", "--run_path"},
       {},
       /*any_with_value=*/true}};
  return *all;
}

// Null: the program is none that is known to run scripts.
const Interpreter* FindInterpreter(const std::string& program) {
  const std::string file = std::filesystem::path(program).filename().string();
  const std::string_view name(file.data(), file.find_last_not_of("0123456789.") + 1);
  for (const Interpreter& each : Interpreters()) {
    if (each.name == name) return &each;
  }
  return nullptr;
}

bool IsOneOf(std::string_view option, const std::vector<std::string_view>& options) {
  return std::find(options.begin(), options.end(), option) != options.end();
}

// -ec is -e -c; a long option is one word.
bool SaysWhatToRun(const Interpreter& interpreter, std::string_view option) {
  if (option.starts_with("--")) return IsOneOf(option, interpreter.instead);
  return std::any_of(option.begin() + 1, option.end(), [&](const char letter) {
    return IsOneOf(std::string("-") + letter, interpreter.instead);
  });
}

// The word of the command that must be a script's path; empty: none must.
std::string ScriptOf(const std::vector<std::string>& command) {
  const Interpreter* interpreter = FindInterpreter(command.front());
  if (interpreter == nullptr) return "";
  bool may_be_value = false;
  for (std::size_t i = 1; i < command.size(); ++i) {
    const std::string& word = command[i];
    if (word.size() > 1 && (word[0] == '-' || word[0] == '+')) {
      if (SaysWhatToRun(*interpreter, word)) return "";
      if (IsOneOf(word, interpreter->with_value)) ++i;
      may_be_value = interpreter->any_with_value && word.find('=') == std::string::npos;
      continue;
    }
    const bool is_file = word.find_first_of("./") != std::string::npos;
    if (is_file && (!may_be_value || word.ends_with(".py"))) return word;
    if (!may_be_value) return "";
    may_be_value = false;
  }
  return "";
}

// Whether the script that an interpreter is to run is there: else each trial would find out alone.
absl::Status CheckScript(const StudySpec& spec) {
  const auto exists = [](const std::string& path) {
    std::error_code error;
    return std::filesystem::exists(path, error);
  };
  const std::string word = ScriptOf(spec.command);
  if (!PlaceholdersOf(word).empty()) return absl::OkStatus();  // each trial runs another one
  ESPALIER_ASSIGN_OR_RETURN(const std::vector<std::string> words,
                            FillCommand({"", word}, {.parameters_json = "{}"}));
  const std::string& script = words[1];
  const std::string path = Below(spec.directory, script);
  if (script.empty() || exists(path)) return absl::OkStatus();
  // A shell looks for it there too.
  if (script.find('/') == std::string::npos && IsInPath(spec, script, exists)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "command: ", spec.command.front(), " is to run \"", script, "\", and there is no file ", path,
      ": give its path, taken from ", spec.directory, ", where the trials run"));
}

}  // namespace

absl::Status CheckCommand(const StudySpec& spec) {
  ESPALIER_RETURN_IF_ERROR(CheckProgram(spec));
  return CheckScript(spec);
}

absl::Status CheckNeeds(const StudySpec& spec) {
  for (const auto& [file, remedy] : spec.needs) {
    std::error_code error;
    if (std::filesystem::exists(file, error)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("\"needs\": the trials read ", file, ", which is not there: ", remedy));
  }
  return absl::OkStatus();
}

}  // namespace espalier
