#include "tuner/cli/options/installed_dashboard.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "tuner/server/engines/program_run.h"

namespace espalier {
namespace {

// Finds it without importing it, and all that it imports.
constexpr char kFind[] =
    "import importlib.util as u; s = u.find_spec('optuna_dashboard'); "
    "print(s.submodule_search_locations[0] if s else '')";
constexpr char kRemedy[] = "install it by: python3 -m pip install optuna-dashboard";

}  // namespace

absl::StatusOr<std::string> InstalledDashboard() {
  const absl::StatusOr<ProgramEnd> end = RunProgram({.command = {"python3", "-c", kFind}});
  if (!end.ok() || end->exit_code != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("--dashboard: cannot look for optuna-dashboard: ",
                     end.ok() ? FailureOf("python3", *end) : std::string(end.status().message()),
                     "; ", kRemedy));
  }
  const std::string folder(absl::StripAsciiWhitespace(end->output));
  if (folder.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "--dashboard: optuna-dashboard is not installed for the python3 of PATH; ", kRemedy));
  }
  return folder;
}

}  // namespace espalier
