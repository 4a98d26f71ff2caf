// `tuner tell`: reports a value, for commands that know nothing of Espalier.

#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "tuner/cli/client.h"
#include "tuner/cli/options/service_options.h"
#include "tuner/cli/verb.h"

namespace espalier {
namespace {

constexpr double kTellAgainAfter_s = 0.2;

struct TellArguments {
  ServiceArguments service;
  double value = 0;
  std::optional<std::int64_t> step;
  bool final = false;
  std::int64_t trial = 0;
  double timeout_s = 30;
};

absl::StatusOr<std::int64_t> TrialIdOf(const TellArguments& arguments) {
  if (arguments.trial != 0) return arguments.trial;
  const char* text = std::getenv("ESPALIER_TRIAL_ID");
  if (text == nullptr) {
    return absl::InvalidArgumentError(
        "no trial is named: give --trial ID, or call this from within a trial, where "
        "ESPALIER_TRIAL_ID is set");
  }
  const std::string_view view(text);
  std::int64_t id = 0;
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), id);
  if (error != std::errc() || end != view.data() + view.size() || id <= 0) {
    return absl::InvalidArgumentError("ESPALIER_TRIAL_ID=\"" + std::string(view) +
                                      "\": must be a trial's id, a number above 0");
  }
  return id;
}

// A service that is just being restarted must not cost the trial its value: waits until it answers.
// What breaks on its way is told again, if that counts once: a value without a step would be told
// twice.
absl::StatusOr<v1::TellResponse> TellUntilAnswered(ClientOptions options,
                                                   const v1::TellRequest& request) {
  using std::chrono::steady_clock;
  const auto ends = steady_clock::now() + std::chrono::duration<double>(options.timeout_s);
  const bool counts_once = request.has_step() || request.final();
  options.wait_for_ready = true;
  while (true) {
    absl::StatusOr<v1::TellResponse> response = Client(options).Call<api::Tell>(request);
    options.timeout_s = std::chrono::duration<double>(ends - steady_clock::now()).count();
    if (!counts_once || !absl::IsUnavailable(response.status()) ||
        options.timeout_s <= kTellAgainAfter_s) {
      return response;
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(kTellAgainAfter_s));
  }
}

// A trial's log has both outputs. There nobody reads the answer, and each value would add a line.
bool PrintsIntoLog() {
  struct stat out {};
  struct stat errors {};
  return fstat(STDOUT_FILENO, &out) == 0 && fstat(STDERR_FILENO, &errors) == 0 &&
         S_ISREG(out.st_mode) && out.st_dev == errors.st_dev && out.st_ino == errors.st_ino;
}

absl::Status Tell(const TellArguments& arguments) {
  ESPALIER_ASSIGN_OR_RETURN(const std::int64_t trial, TrialIdOf(arguments));
  ESPALIER_ASSIGN_OR_RETURN(ClientOptions options, arguments.service.Resolve());
  options.timeout_s = arguments.timeout_s;
  v1::TellRequest request;
  request.set_trial_id(trial);
  request.set_value(arguments.value);
  request.set_final(arguments.final);
  if (arguments.step.has_value()) request.set_step(*arguments.step);
  ESPALIER_ASSIGN_OR_RETURN(const v1::TellResponse response,
                            TellUntilAnswered(std::move(options), request));
  if (!response.note().empty()) {
    std::fprintf(stderr, "tuner tell: %s\n", response.note().c_str());
  }
  if (response.should_stop()) {
    std::puts("stop");
  } else if (!PrintsIntoLog()) {
    std::puts("continue");
  }
  return absl::OkStatus();
}

}  // namespace

VerbAction AddTell(CliCommand& command) {
  auto a = std::make_shared<TellArguments>();
  command
      .AddOption("--value", a->value,
                 "Value of the study's metric (nan and inf are allowed). The answer on stdout is "
                 "\"stop\" if the trial should end soon, else \"continue\", which is not "
                 "printed into a trial's log")
      .Required();
  command.AddOption("--step", a->step,
                    "Step that the value belongs to, 0 or more (default: the next one, from 1)");
  command.AddFlag("--final", a->final, "The value is the trial's result");
  command.AddOption("--trial", a->trial, "The trial's id (default: ESPALIER_TRIAL_ID)").Positive();
  command
      .AddOption("--timeout", a->timeout_s,
                 "Seconds to wait for the service. With --step or --final, a call that fails "
                 "because the service restarts is repeated within this time")
      .Positive()
      .ShowDefault();
  a->service.AddTo(command);
  return [a] {
    const absl::Status status = Tell(*a);
    return status.ok() ? ExitCode::kOk : Fail("tell", status);
  };
}

}  // namespace espalier
