#include "base/launchers.h"

#include <algorithm>

#include "absl/strings/str_split.h"

namespace espalier {

const std::vector<Launcher>& Launchers() {
  static const std::vector<Launcher> kLaunchers = {
      {.name = "torchrun", .modules = {"torch.distributed.run", "torch.distributed.launch"}},
      {.name = "accelerate", .modules = {"accelerate.commands.launch"}},
      // It splits the variable at commas and takes each for a number (launcher/runner.py).
      {.name = "deepspeed", .modules = {"deepspeed.launcher.runner"}, .counts_gpus = true},
      {.name = "mpirun"},
      {.name = "mpiexec"},
      {.name = "horovodrun"}};
  return kLaunchers;
}

const Launcher* LauncherOf(const std::vector<std::string>& command) {
  for (const std::string& words : command) {
    for (const absl::string_view each : absl::StrSplit(words, absl::ByAnyChar(" \t\n;&|()"))) {
      const std::string_view word(each.data(), each.size());
      const std::string_view program = word.substr(word.rfind('/') + 1);
      for (const Launcher& launcher : Launchers()) {
        if (program == launcher.name ||
            std::ranges::find(launcher.modules, word) != launcher.modules.end()) {
          return &launcher;
        }
      }
    }
  }
  return nullptr;
}

}  // namespace espalier
