#include "trial_runner/torch/process/trial_context.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/environment.h"
#include "base/protocol.h"
#include "base/random.h"
#include "base/status.h"
#include "trial_runner/control/fork_point.h"
#include "trial_runner/control/socket_control_plane.h"
#include "trial_runner/control/standalone_control_plane.h"
#include "trial_runner/torch/process/device.h"

namespace espalier {
namespace {

absl::StatusOr<std::int64_t> IntegerVariable(const char* name, std::int64_t otherwise) {
  const std::string text = EnvironmentVariable(name);
  std::int64_t value = otherwise;
  if (!text.empty() && !absl::SimpleAtoi(text, &value)) {
    return absl::InvalidArgumentError(
        absl::StrCat("environment variable ", name, "=\"", text, "\": want an integer"));
  }
  return value;
}

// Absent: 0.
absl::StatusOr<double> SecondsVariable(const char* name) {
  const std::string text = EnvironmentVariable(name);
  double value = 0;
  if (!text.empty() && (!absl::SimpleAtod(text, &value) || !(value >= 0 && value <= 86400))) {
    return absl::InvalidArgumentError(
        absl::StrCat("environment variable ", name, "=\"", text, "\": want 0 to 86400 seconds"));
  }
  return value;
}

absl::StatusOr<Parameters> ReadParameters(int argc, char** argv) {
  Parameters parameters;
  if (const std::string path = EnvironmentVariable("ESPALIER_PARAMETERS"); !path.empty()) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    if (!file) {
      return absl::NotFoundError(
          absl::StrCat("ESPALIER_PARAMETERS: cannot read the file \"", path, "\""));
    }
    ESPALIER_ASSIGN_OR_RETURN(parameters, Parameters::FromJson(text.str(), path));
  }
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) != "--set") continue;
    if (i + 1 == argc) return absl::InvalidArgumentError("--set: want name=value after it");
    ESPALIER_RETURN_IF_ERROR(parameters.Set(argv[++i]));
  }
  return parameters;
}

absl::StatusOr<BetterValue> ReadDirection() {
  const std::string direction = EnvironmentVariable("ESPALIER_DIRECTION");
  if (direction.empty()) return BetterValue::kUnknown;
  if (direction == "minimize") return BetterValue::kSmaller;
  if (direction == "maximize") return BetterValue::kLarger;
  return absl::InvalidArgumentError(absl::StrCat("environment variable ESPALIER_DIRECTION=\"",
                                                 direction, "\": want minimize or maximize"));
}

absl::Status ReadSeed(TrialContext& context) {
  ESPALIER_ASSIGN_OR_RETURN(const std::int64_t own,
                            IntegerVariable(kSeedVariable, context.trial_number));
  ESPALIER_ASSIGN_OR_RETURN(const std::int64_t seed, context.parameters.Get("seed", own));
  context.seed = MixSeed(static_cast<std::uint64_t>(seed), "trial");
  return absl::OkStatus();
}

absl::Status ReadCollectivesOptions(CollectivesOptions& options) {
  if (const std::string host = EnvironmentVariable("ESPALIER_HOST_ADDRESS"); !host.empty()) {
    options.host = host;
  }
  options.interface = EnvironmentVariable("ESPALIER_INTERFACE");
  if (const std::string ports = EnvironmentVariable("ESPALIER_PORT_RANGE"); !ports.empty()) {
    const absl::StatusOr<PortRange> range = ParsePortRange(ports);
    if (!range.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("environment variable ESPALIER_PORT_RANGE: ",
                                                     std::string(range.status().message())));
    }
    options.ports = *range;
  }
  options.implementation = EnvironmentVariable("ESPALIER_COLLECTIVES");
  if (const std::string limit = EnvironmentVariable("ESPALIER_COLLECTIVE_TIMEOUT");
      !limit.empty()) {
    double seconds = 0;
    if (!absl::SimpleAtod(limit, &seconds) || !(seconds > 0)) {
      return absl::InvalidArgumentError(
          absl::StrCat("environment variable ESPALIER_COLLECTIVE_TIMEOUT=\"", limit,
                       "\": want a positive number of seconds"));
    }
    options.collective_limit_s = seconds;
  }
  return absl::OkStatus();
}

}  // namespace

namespace {

struct Host {
  std::thread::id thread;
  std::function<void()> before_exit;
};

Host& TheHost() {
  static Host host;
  return host;
}

}  // namespace

void HostEndings(std::function<void()> before_exit) {
  TheHost() = {std::this_thread::get_id(), std::move(before_exit)};
}

void EndProcess(const absl::Status& why, int exit_code) {
  if (TheHost().thread == std::this_thread::get_id()) {
    throw ProgramError(std::string(why.message()), exit_code);
  }
  std::fprintf(stderr, "espalier: %s\n", std::string(why.message()).c_str());
  EndProcess(exit_code);
}

void BadUse(const std::string& message) {
  EndProcess(absl::InvalidArgumentError(message), kBadUseExitCode);
}

void EndProcess(int exit_code) {
  if (TheHost().before_exit) TheHost().before_exit();
  std::fflush(nullptr);
  _exit(exit_code);
}

absl::StatusOr<std::unique_ptr<TrialContext>> TrialContext::FromEnvironment(int argc, char** argv) {
  std::optional<std::string> fork_obstacle;
  if (TheHost().thread == std::thread::id()) {  // interpreters have zygotes of their own
    BeForked();
    if (EnvironmentVariable("ESPALIER_FORK") == "1") fork_obstacle = ForkObstacle();
  }
  auto context = std::make_unique<TrialContext>();
  ESPALIER_ASSIGN_OR_RETURN(context->parameters, ReadParameters(argc, argv));
  ESPALIER_ASSIGN_OR_RETURN(const std::int64_t replica, IntegerVariable("ESPALIER_REPLICA_ID", 1));
  context->replica = ReplicaId(replica);
  ESPALIER_ASSIGN_OR_RETURN(context->trial_number, IntegerVariable("ESPALIER_TRIAL_NUMBER", 0));
  const char* const of_threads =
      EnvironmentVariable(kOwnThreadsVariable).empty() ? "ESPALIER_THREADS" : kOwnThreadsVariable;
  ESPALIER_ASSIGN_OR_RETURN(const std::int64_t threads, IntegerVariable(of_threads, 1));
  if (threads < 1 || threads > 4096) {
    return absl::InvalidArgumentError(
        absl::StrCat("environment variable ", of_threads, "=", threads, ": want 1 to 4096"));
  }
  context->threads = static_cast<int>(threads);
  ESPALIER_ASSIGN_OR_RETURN(context->joins, IntegerVariable("ESPALIER_JOINS", 0));
  ESPALIER_RETURN_IF_ERROR(ReadSeed(*context));
  const std::string mode = EnvironmentVariable("ESPALIER_BATCH_MODE");
  if (!mode.empty() && mode != "fixed" && mode != "adaptive") {
    return absl::InvalidArgumentError(absl::StrCat("environment variable ESPALIER_BATCH_MODE=\"",
                                                   mode, "\": want fixed or adaptive"));
  }
  context->adaptive_batch = mode == "adaptive";
  ESPALIER_ASSIGN_OR_RETURN(context->better_value, ReadDirection());
  context->checkpoint_dir = EnvironmentVariable("ESPALIER_CHECKPOINT_DIR");
  context->checkpoint = EnvironmentVariable("ESPALIER_CHECKPOINT");
  ESPALIER_RETURN_IF_ERROR(ReadCollectivesOptions(context->collectives));
  ESPALIER_ASSIGN_OR_RETURN(context->device, AssignedDevice());
  if (!context->device.is_cpu()) context->collectives.device = int{context->device.index()};

  ESPALIER_ASSIGN_OR_RETURN(const std::int64_t fd, IntegerVariable("ESPALIER_CONTROL_FD", -1));
  if (fd < 0) {
    context->control = MakeStandaloneControlPlane(context->replica);
  } else if (fcntl(static_cast<int>(fd), F_SETFD, FD_CLOEXEC) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("environment variable ESPALIER_CONTROL_FD=", fd,
                                                   ": no such descriptor is open"));
  } else {
    ESPALIER_ASSIGN_OR_RETURN(const double lease_s, SecondsVariable("ESPALIER_REPLICA_LEASE"));
    context->control = MakeSocketControlPlane(
        static_cast<int>(fd), {.lease_s = lease_s,
                               .spares = EnvironmentVariable("ESPALIER_SPARE") == "1",
                               .fork_obstacle = std::move(fork_obstacle)});
  }
  return context;
}

void TrialContext::Report(ReplicaReport report) {
  report.progress = progress;
  if (rank == 0) control->Send(report);
  reports_.push_back(std::move(report));
  if (reports_.size() > kKeptReports) reports_.pop_front();
}

absl::Status TrialContext::AddState(State& state) {
  const std::string name = state.name();
  const bool valid = !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
  });
  if (!valid) {
    return absl::InvalidArgumentError(
        absl::StrCat("state \"", name, "\": want a name of letters, digits, '_', '-' and '.'"));
  }
  if (!states.emplace(name, &state).second) {
    return absl::AlreadyExistsError(absl::StrCat("there is already a state named \"", name,
                                                 "\": want a name of its own for each"));
  }
  return absl::OkStatus();
}

std::optional<double> TrialContext::ValueOfPresentState() const {
  if (reports_.empty() || reports_.back().progress != progress) return std::nullopt;
  return reports_.back().value;
}

void TrialContext::ResendReports() {
  for (const ReplicaReport& report : reports_) control->Send(report);
}

}  // namespace espalier
