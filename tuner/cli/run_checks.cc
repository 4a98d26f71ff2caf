#include "tuner/cli/run_checks.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "tuner/cli/local_runs.h"
#include "tuner/cli/machine/files.h"
#include "tuner/cli/options/optuna_options.h"
#include "tuner/cli/options/service_options.h"
#include "tuner/cli/options/timeout_options.h"
#include "tuner/cli/options/web_options.h"
#include "tuner/cli/study_source.h"
#include "tuner/core/core.h"
#include "tuner/server/access/listen_address.h"
#include "tuner/storage/storage.h"
#include "tuner/study_file/study_file.h"

namespace espalier {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxOldRuns = 10000;

// Checks of a study do not know which file it came from.
absl::Status InFile(const std::string& file, const absl::Status& status) {
  if (status.ok() || std::string(status.message()).find(file) != std::string::npos) return status;
  return Prefixed(file, status);
}

absl::StatusOr<AgentOptions> CheckNode(const NodeArguments& arguments, const StudySpec& spec) {
  AgentOptions options;
  ESPALIER_RETURN_IF_ERROR(arguments.Resolve(options));
  const int slots = options.slots;
  if (spec.min_slots > slots) {
    return absl::InvalidArgumentError(fmt::format(
        "study \"{}\" needs at least {} slots a trial, but there {} {}: raise --slots or lower "
        "the study's minimum",
        spec.name, spec.min_slots, slots == 1 ? "is only" : "are only", slots));
  }
  if (spec.slots_per_node > 0 && spec.min_slots > spec.slots_per_node) {
    return absl::InvalidArgumentError(
        fmt::format("study \"{}\" needs at least {} slots a trial, of which \"slots_per_node\" "
                    "allows {} on one "
                    "machine, and there is one: raise that, or lower the study's minimum",
                    spec.name, spec.min_slots, spec.slots_per_node));
  }
  return options;
}

// Whether the report can be written, before hours have gone into it.
absl::Status CheckReport(const std::string& path) {
  if (path.empty()) return absl::OkStatus();
  std::error_code error;
  if (fs::is_directory(path, error)) {
    return absl::InvalidArgumentError(
        fmt::format("--report {}: is a directory; give the path of a file", path));
  }
  // A pipe or a device is written as it is; other files are replaced in their folder.
  const bool special = fs::exists(path, error) && !fs::is_regular_file(path, error);
  const fs::path parent = fs::path(path).parent_path();
  const std::string target = special ? path : parent.empty() ? "." : parent.string();
  if (access(target.c_str(), special ? W_OK : W_OK | X_OK) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("--report {}: cannot be written, {}: {}; name a file in a directory that can be "
                  "written",
                  path, target, std::strerror(errno)));
}

// The database must be ours and not in use before it is moved.
absl::Status MoveAside(const std::string& directory, const std::string& study) {
  const std::string database = DatabasePath(directory);
  std::error_code error;
  if (!fs::exists(database, error)) return absl::OkStatus();
  ESPALIER_RETURN_IF_ERROR(OrInUse(OpenSqliteStorage(database).status(), directory, study));
  fs::path old;
  for (int i = 1; i < kMaxOldRuns; ++i) {
    old = fs::path(directory) / fmt::format("old-{}", i);
    if (!fs::exists(old, error)) break;
  }
  ESPALIER_RETURN_IF_ERROR(MakeDirectory(old.string()));
  for (const char* name : {"espalier.db", "espalier.db-wal", "espalier.db-shm", "trials",
                           "report.html", "tuner.log"}) {
    const fs::path from = fs::path(directory) / name;
    if (!fs::exists(from, error)) continue;
    fs::rename(from, old / name, error);
    if (error) {
      return absl::InvalidArgumentError(
          fmt::format("cannot move {} to {}: {}", from.string(), old.string(), error.message()));
    }
  }
  return absl::OkStatus();
}

// What other machines reach asks for a token, and is encrypted unless somebody says that it need
// not be.
absl::Status CheckAddresses(const RunArguments& arguments) {
  for (const auto& [option, text] : {std::pair("--grpc", &arguments.grpc_address),
                                     std::pair("--http", &arguments.http_address)}) {
    if (text->empty()) continue;
    const absl::StatusOr<ListenAddress> address = ParseListenAddress(*text);
    if (!address.ok()) return Prefixed(option, address.status());
    if (address->loopback()) continue;
    if (!arguments.plaintext) {
      return absl::InvalidArgumentError(fmt::format(
          "{} {}: other machines reach it, and `tuner run` encrypts nothing, not even tokens: use "
          "`tuner serve` and `tuner agent`, which do, or say --plaintext",
          option, *text));
    }
    if (arguments.token_file.empty()) {
      return absl::InvalidArgumentError(fmt::format(
          "{} {}: other machines reach it: give a token (--token-file)", option, *text));
    }
  }
  return absl::OkStatus();
}

}  // namespace

bool OthersReach(const std::string& address) {
  const absl::StatusOr<ListenAddress> parsed = ParseListenAddress(address);
  return parsed.ok() && !parsed->loopback();
}

absl::Status OrInUse(const absl::Status& error, const std::string& directory,
                     const std::string& study) {
  const std::string database = DatabasePath(directory);
  std::error_code ignored;
  // A `tuner serve` on this database has no such file.
  if (error.ok() || !fs::exists(ServiceFilePath(directory), ignored)) return error;
  const std::optional<std::string> holder = HolderOf(database);
  if (!holder) return error;
  const auto source = OpenDatabase(database);
  const bool same = source.ok() && (*source)->GetStudy(study, /*with_values=*/false).ok();
  const std::string process = holder->empty() ? "" : fmt::format(" (process {})", *holder);
  return absl::FailedPreconditionError(
      same ? fmt::format("study {} is running already{}: follow it with `tuner watch {} --dir {}`, "
                         "or choose another --dir",
                         study, process, study, directory)
           : fmt::format("another `tuner run` is at work in {}{}: `tuner ls --dir {}` lists its "
                         "studies; choose another --dir",
                         directory, process, directory));
}

absl::StatusOr<RunPlan> CheckRun(const RunArguments& arguments) {
  ESPALIER_ASSIGN_OR_RETURN(StudySpec spec, ReadStudyFile(arguments.study_file));
  if (arguments.trials > 0) spec.max_trials = arguments.trials;
  if (!arguments.like.empty()) spec.like = {.study = arguments.like};
  if (spec.by_clients()) {
    return absl::InvalidArgumentError(fmt::format(
        "{}: \"ask_and_tell\": clients run the trials of such a study, and `tuner run` would run "
        "them itself: start a service with `tuner serve`, and give it the file with `tuner submit`",
        arguments.study_file));
  }
  for (const absl::Status& status :
       {Validate(spec), CheckPlaceholders(spec), CheckCommand(spec), CheckNeeds(spec)}) {
    ESPALIER_RETURN_IF_ERROR(InFile(arguments.study_file, status));
  }
  for (const std::string& note : {DirectionNote(spec), ParameterNote(spec)}) {
    if (!note.empty()) std::fprintf(stderr, "tuner run: %s\n", note.c_str());
  }
  ESPALIER_RETURN_IF_ERROR(CheckTimeouts(arguments.timeouts));
  ESPALIER_RETURN_IF_ERROR(CheckAddresses(arguments));
  ESPALIER_ASSIGN_OR_RETURN(ProxiedAt proxied, ResolveProxy(arguments.proxied));
  ESPALIER_ASSIGN_OR_RETURN(AgentOptions agent, CheckNode(arguments.node, spec));
  RunPlan plan{.arguments = arguments,
               .spec = std::move(spec),
               .agent = std::move(agent),
               .directory = {},
               .token = {}};
  plan.arguments.proxied = std::move(proxied);
  ESPALIER_RETURN_IF_ERROR(ResolveOptuna(plan.arguments.optuna));
  if (!arguments.token_file.empty()) {
    ESPALIER_ASSIGN_OR_RETURN(plan.token, ReadToken(arguments.token_file));
  }
  std::error_code error;
  fs::path directory = arguments.directory.empty() ? fs::path(RunFolder(plan.spec.name))
                                                   : fs::path(arguments.directory);
  // The directory itself is that of a run that is kept.
  if (arguments.memory) directory /= "memory";
  plan.directory = fs::absolute(directory, error).lexically_normal().string();
  ESPALIER_RETURN_IF_ERROR(MakeDirectory(plan.directory));
  ESPALIER_RETURN_IF_ERROR(CheckReport(arguments.report));  // perhaps in that directory
  if (arguments.fresh) {
    ESPALIER_RETURN_IF_ERROR(MoveAside(plan.directory, plan.spec.name));
  }
  return plan;
}

}  // namespace espalier
