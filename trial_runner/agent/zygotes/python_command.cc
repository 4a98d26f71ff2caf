#include "trial_runner/agent/zygotes/python_command.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/launch_kinds.h"
#include "base/launcher_variables.h"
#include "base/protocol.h"
#include "trial_runner/agent/processes/left_processes.h"

namespace espalier {
namespace {

constexpr std::string_view kOurPrefix = "ESPALIER_";
// Of ours, what is read when espalier.torch is imported.
constexpr const char* kLibraryVariable = "ESPALIER_TORCH_LIBRARY";

constexpr const char* kPathVariable = "PYTHONPATH";

std::vector<std::string> ImportPaths(const LaunchOrder& order) {
  const auto paths = order.environment.find(kPathVariable);
  if (paths == order.environment.end() || paths->second.empty()) return {};
  return absl::StrSplit(paths->second, ':');
}

bool HasRelativePaths(const LaunchOrder& order) {
  const std::vector<std::string> list = ImportPaths(order);
  return std::any_of(list.begin(), list.end(),
                     [](const std::string& path) { return !path.starts_with('/'); });
}

bool IsScript(const LaunchOrder& order, const std::string& name) {
  const std::string path = name.starts_with('/') ? name : absl::StrCat(order.directory, "/", name);
  struct stat status {};
  return name.ends_with(".py") && !name.starts_with('-') && stat(path.c_str(), &status) == 0 &&
         S_ISREG(status.st_mode);
}

// Read by the program, not by what it imports: who the replica is, and which GPU it has, which CUDA
// reads when it is initialised; which rank it is, and where its ranks meet.
bool IsReadLater(const std::string& variable) {
  if (variable == kLibraryVariable) return false;
  return variable.starts_with(kOurPrefix) || variable == "CUDA_VISIBLE_DEVICES" ||
         IsOfALauncher(variable);
}

// A trial's first process may have more threads than those that join it, and is forked from the
// same zygote: its Trial, or _zygote.py, sets what it has.
std::string ValueInZygote(const LaunchOrder& order, const std::string& variable,
                          const std::string& value) {
  if (variable != "OMP_NUM_THREADS") return value;
  const auto all = order.environment.find("ESPALIER_THREADS");
  const auto own = order.environment.find(kOwnThreadsVariable);
  const bool ours = all != order.environment.end() && all->second == value;
  return ours && own != order.environment.end() ? own->second : value;
}

}  // namespace

bool ImportsFromItsOwnFolder(const LaunchOrder& order) {
  return HasRelativePaths(order) &&
         std::filesystem::path(order.log_path).parent_path() == order.directory;
}

LaunchOrder WithWholePaths(LaunchOrder order) {
  if (!HasRelativePaths(order)) return order;
  std::vector<std::string> whole;
  for (const std::string& path : ImportPaths(order)) {
    std::filesystem::path joined = std::filesystem::path(order.directory) / path;
    if (joined = joined.lexically_normal(); !joined.has_filename()) joined = joined.parent_path();
    whole.push_back(joined.string());
  }
  order.environment[kPathVariable] = absl::StrJoin(whole, ":");
  return order;
}

std::optional<PythonCommand> ReadPythonCommand(const LaunchOrder& order) {
  const std::vector<std::string>& words = order.command;
  if (words.empty() || !IsPythonInterpreter(words[0])) return std::nullopt;
  if (HasRelativePaths(order) &&
      (ImportsFromItsOwnFolder(order) || !order.directory.starts_with('/'))) {
    return std::nullopt;
  }
  if (order.environment.contains("PYTHONINSPECT")) return std::nullopt;
  const absl::StatusOr<std::string> found = FindProgram(order);
  if (!found.ok() || !found->starts_with('/')) return std::nullopt;
  struct stat folder {};
  if (stat(order.directory.c_str(), &folder) != 0 || !S_ISDIR(folder.st_mode)) return std::nullopt;
  PythonCommand command;
  std::size_t next = 1;
  for (; next < words.size() && words[next] == "-u"; ++next) command.options.emplace_back("-u");
  command.is_module = next < words.size() && words[next] == "-m";
  if (command.is_module) ++next;
  if (next >= words.size()) return std::nullopt;
  command.program = next;
  if (command.is_module ? words[next].empty() : !IsScript(order, words[next])) return std::nullopt;
  return command;
}

std::string ZygoteKey(const LaunchOrder& order, const PythonCommand& command,
                      const std::vector<std::string>& modules) {
  std::string key = order.command[0];
  const auto add = [&key](const std::string& text) { key.append(1, '\0').append(text); };
  for (const std::string& option : command.options) add(option);
  for (const std::string& module : modules) add(absl::StrCat("import ", module));
  add(EnvironmentKey(order));
  return key;
}

std::string EnvironmentKey(const LaunchOrder& order) {
  std::string key;
  const auto add = [&key](const std::string& text) { key.append(text).append(1, '\0'); };
  for (const int cpu : order.cpus) add(absl::StrCat("on ", cpu));
  for (const auto& [name, value] : order.environment) {
    if (!IsReadLater(name)) add(absl::StrCat(name, "=", ValueInZygote(order, name, value)));
  }
  return key;
}

std::map<std::string, std::string> ZygoteEnvironment(const LaunchOrder& order) {
  std::map<std::string, std::string> environment;
  for (const auto& [name, value] : order.environment) {
    // By its mark the next agent finds what this one has left.
    if (!IsReadLater(name) || name == kRunMarkVariable) {
      environment[name] = ValueInZygote(order, name, value);
    }
  }
  return environment;
}

}  // namespace espalier
