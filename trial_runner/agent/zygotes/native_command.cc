#include "trial_runner/agent/zygotes/native_command.h"

#include <sys/stat.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "base/protocol.h"
#include "trial_runner/agent/zygotes/python_command.h"

namespace espalier {
namespace {

// A folder in which nothing lies that a program might look for, nor can be put.
constexpr const char* kNowhere = "/proc";

bool IsMachineCode(const std::string& path) {
  std::array<char, 4> magic{};
  std::ifstream file(path, std::ios::binary);
  return file.read(magic.data(), magic.size()) &&
         std::string_view(magic.data(), magic.size()) == "\177ELF";
}

}  // namespace

std::optional<NativeCommand> ReadNativeCommand(const LaunchOrder& order) {
  const absl::StatusOr<std::string> found = FindProgram(order);
  if (!found.ok()) return std::nullopt;
  // Where the study names no folder, each trial starts in one of its own, beside its log.
  const bool in_own = std::filesystem::path(order.log_path).parent_path() == order.directory;
  const bool relative = !found->starts_with('/');
  if (relative && in_own) return std::nullopt;
  NativeCommand command{relative ? absl::StrCat(order.directory, "/", *found) : *found,
                        in_own ? kNowhere : order.directory};
  if (!IsMachineCode(command.path)) return std::nullopt;
  return command;
}

std::string ZygoteKey(const LaunchOrder& order, const NativeCommand& command) {
  struct stat file {};
  if (stat(command.path.c_str(), &file) != 0) file = {};
  std::string key = absl::StrCat("program ", command.path, " ", file.st_dev, " ", file.st_ino, " ",
                                 file.st_size, " ", file.st_mtim.tv_sec, " ", file.st_mtim.tv_nsec);
  const auto add = [&key](const std::string& text) { key.append(1, '\0').append(text); };
  add(command.directory);
  for (const std::string& word : order.command) add(word);
  add(EnvironmentKey(order));
  return key;
}

std::map<std::string, std::string> NativeZygoteEnvironment(const LaunchOrder& order) {
  std::map<std::string, std::string> environment = ZygoteEnvironment(order);
  environment[kZygoteVariable] = "1";
  return environment;
}

bool RunsProgram(pid_t pid, const std::string& path) {
  struct stat runs {};
  struct stat wanted {};
  return stat(absl::StrCat("/proc/", pid, "/exe").c_str(), &runs) == 0 &&
         stat(path.c_str(), &wanted) == 0 && runs.st_dev == wanted.st_dev &&
         runs.st_ino == wanted.st_ino;
}

bool RunsReplacedFiles(pid_t pid) {
  std::ifstream maps(absl::StrCat("/proc/", pid, "/maps"));
  for (std::string line; std::getline(maps, line);) {
    std::istringstream fields(line);
    std::string range;
    std::string access;
    fields >> range >> access;
    const bool code = access.find('x') != std::string::npos;
    if (code && line.ends_with(" (deleted)")) return true;
  }
  return false;
}

}  // namespace espalier
