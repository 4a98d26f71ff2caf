#include "tuner/cli/options/optuna_options.h"

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "tuner/cli/options/command.h"

namespace espalier {

namespace {

constexpr double kLeastMemory_gib = 0.25;
constexpr double kMostMemory_gib = 1 << 20;
constexpr double kMostProcessor_s = 1e6;

}  // namespace

void AddOptunaTo(CliCommand& command, OptunaOptions& options) {
  CliOption& python =
      command.AddOption("--optuna-python", options.python,
                        "Python with Optuna in it, for studies with the sampler `optuna` (default: "
                        "none, and such studies are refused)");
  command
      .AddOption("--optuna-hub", options.hubs,
                 "Folder of OptunaHub's packages that such studies may name; may be given several "
                 "times. What it holds is run")
      .Needs(python);
  command
      .AddOption("--optuna-memory", options.memory_gib,
                 "GiB of memory that the process of such a study may have")
      .ShowDefault()
      .Needs(python);
  command
      .AddOption("--optuna-seconds", options.processor_s,
                 "Seconds of a processor that one of its suggestions may take")
      .ShowDefault()
      .Needs(python);
}

absl::Status ResolveOptuna(OptunaOptions& options) {
  if (options.python.find('/') != std::string::npos && access(options.python.c_str(), X_OK) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--optuna-python \"", options.python, "\": is no program"));
  }
  for (std::string& hub : options.hubs) {
    std::error_code error;
    if (!std::filesystem::is_directory(hub, error)) {
      return absl::InvalidArgumentError(absl::StrCat("--optuna-hub \"", hub, "\": is no folder"));
    }
    hub = std::filesystem::canonical(hub, error).string();
  }
  if (!(options.memory_gib >= kLeastMemory_gib && options.memory_gib <= kMostMemory_gib)) {
    return absl::InvalidArgumentError(absl::StrCat("--optuna-memory ", options.memory_gib,
                                                   ": must be ", kLeastMemory_gib, " GiB or more"));
  }
  if (!(options.processor_s >= 1 && options.processor_s <= kMostProcessor_s)) {
    return absl::InvalidArgumentError(absl::StrCat("--optuna-seconds ", options.processor_s,
                                                   ": must be 1 to ", kMostProcessor_s));
  }
  return absl::OkStatus();
}

}  // namespace espalier
