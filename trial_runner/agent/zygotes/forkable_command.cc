#include "trial_runner/agent/zygotes/forkable_command.h"

#include "trial_runner/agent/zygotes/native_command.h"
#include "trial_runner/agent/zygotes/python_command.h"

namespace espalier {
namespace {

// Modules are looked for where the interpreter's own are, not in the folder it happens to start in;
// and __main__, which is a replica's later, keeps no names of this.
constexpr const char* kProgram =
    "import sys\n"
    "if not getattr(sys.flags, 'safe_path', False): del sys.path[0]\n"
    "del sys\n"
    "__import__('espalier._zygote')._zygote.main()\n";

// Of python/espalier, and needs PyTorch in any case.
constexpr const char* kCallModule = "espalier._call";

ForkableCommand OfPython(const LaunchOrder& order, const PythonCommand& command,
                         const std::vector<std::string>& modules) {
  ForkableCommand forkable;
  forkable.key = ZygoteKey(order, command, modules);
  forkable.runs = command.is_module ? "module" : "script";
  forkable.program = command.program;
  forkable.known =
      order.expects_elastic || (command.is_module && order.command[command.program] == kCallModule);
  std::vector<std::string>& words = forkable.zygote.command;
  words = {order.command[0]};
  words.insert(words.end(), command.options.begin(), command.options.end());
  words.insert(words.end(), {"-c", kProgram});
  words.insert(words.end(), modules.begin(), modules.end());
  forkable.zygote.directory = "/";
  forkable.zygote.environment = ZygoteEnvironment(order);
  forkable.zygote.cpus = order.cpus;
  return forkable;
}

std::optional<ForkableCommand> OfRanks(const LaunchOrder& order,
                                       const std::vector<std::string>& modules) {
  LaunchOrder rank = order;
  rank.command = order.rank_command;
  const auto python = ReadPythonCommand(rank);
  if (!python) return std::nullopt;
  ForkableCommand forkable = OfPython(WithWholePaths(rank), *python, modules);
  forkable.runs = kRanksOfZygote;
  forkable.known = true;
  return forkable;
}

ForkableCommand OfProgram(const LaunchOrder& order, const NativeCommand& command) {
  ForkableCommand forkable;
  forkable.key = ZygoteKey(order, command);
  forkable.runs = "program";
  forkable.path = command.path;
  forkable.zygote.command = order.command;
  forkable.zygote.directory = command.directory;
  forkable.zygote.environment = NativeZygoteEnvironment(order);
  forkable.zygote.cpus = order.cpus;
  return forkable;
}

}  // namespace

std::optional<ForkableCommand> ReadForkableCommand(const LaunchOrder& order,
                                                   const std::vector<std::string>& modules) {
  if (!order.rank_command.empty()) return OfRanks(order, modules);
  if (const auto python = ReadPythonCommand(order)) {
    return OfPython(WithWholePaths(order), *python, modules);
  }
  if (const auto program = ReadNativeCommand(order)) return OfProgram(order, *program);
  return std::nullopt;
}

}  // namespace espalier
