// `tuner tell`: reports a value, for commands that know nothing of Espalier.

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "tuner/cli/client.h"
#include "tuner/cli/options/service_options.h"
#include "tuner/cli/verb.h"

namespace espalier {
namespace {

constexpr double kTellAgainAfter_s = 0.2;

struct TellArguments {
  ServiceArguments service;
  std::optional<double> value;
  std::optional<std::int64_t> step;
  bool final = false;
  bool should_save = false;
  std::int64_t trial = 0;
  std::optional<int> rank;
  std::optional<int> ranks;
  std::vector<std::string> figures;  // NAME=VALUE
  double timeout_s = 30;
};

// Of what a launcher or an agent has set.
absl::StatusOr<std::int64_t> NumberIn(const char* variable, std::int64_t least, const char* what) {
  const char* text = std::getenv(variable);
  const std::string_view view(text == nullptr ? "" : text);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), number);
  if (error != std::errc() || end != view.data() + view.size() || number < least) {
    return absl::InvalidArgumentError(std::string(variable) + "=\"" + std::string(view) +
                                      "\": must be " + what);
  }
  return number;
}

absl::StatusOr<std::int64_t> TrialIdOf(const TellArguments& arguments) {
  if (arguments.trial != 0) return arguments.trial;
  if (std::getenv("ESPALIER_TRIAL_ID") == nullptr) {
    return absl::InvalidArgumentError(
        "no trial is named: give --trial ID, or call this from within a trial, where "
        "ESPALIER_TRIAL_ID is set");
  }
  return NumberIn("ESPALIER_TRIAL_ID", 1, "a trial's id, a number above 0");
}

// As it is given, else as the trial's launcher says. The ranks of a program that runs trials itself
// have each a trial of their own, so that only the trial's own launcher counts.
absl::Status SetRank(const TellArguments& arguments, v1::ReportRequest& report) {
  if (arguments.rank) {
    report.set_rank(*arguments.rank);
    report.set_ranks(*arguments.ranks);
    return absl::OkStatus();
  }
  // On one machine, which is all that some launchers number by (Lightning), they are the same.
  const char* const variable = std::getenv("RANK") != nullptr ? "RANK" : "LOCAL_RANK";
  const bool launched = std::getenv(variable) != nullptr && std::getenv("WORLD_SIZE") != nullptr;
  if (arguments.trial != 0 || !launched) return absl::OkStatus();
  ESPALIER_ASSIGN_OR_RETURN(const std::int64_t rank,
                            NumberIn(variable, 0, "the number of this process, from 0"));
  ESPALIER_ASSIGN_OR_RETURN(
      const std::int64_t ranks,
      NumberIn("WORLD_SIZE", 1, "how many processes the launcher has started"));
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  report.set_rank(static_cast<std::int32_t>(std::min(rank, kMost)));
  report.set_ranks(static_cast<std::int32_t>(std::min(ranks, kMost)));
  return absl::OkStatus();
}

// A service that is just being restarted must not cost the trial its value: waits until it answers.
// What breaks on its way is told again, if that counts once: a value without a step would be told
// twice.
template <auto kOperation, typename Response, typename Request>
absl::StatusOr<Response> CallUntilAnswered(ClientOptions options, const Request& request,
                                           bool counts_once) {
  using std::chrono::steady_clock;
  const auto ends = steady_clock::now() + std::chrono::duration<double>(options.timeout_s);
  options.wait_for_ready = true;
  while (true) {
    absl::StatusOr<Response> response = Client(options).Call<kOperation>(request);
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

// Whether the trial should end soon or, where that is asked, save and end.
absl::StatusOr<bool> Ask(ClientOptions options, const v1::ReportRequest& request) {
  ESPALIER_ASSIGN_OR_RETURN(const v1::Verdict verdict,
                            (CallUntilAnswered<api::Report, v1::Verdict>(
                                std::move(options), request, /*counts_once=*/true)));
  return request.should_save() ? verdict.save() : verdict.prune();
}

// NAME=VALUE, each name once.
absl::Status ReadFigures(const std::vector<std::string>& given,
                         google::protobuf::Map<std::string, double>& figures) {
  for (const std::string& text : given) {
    const std::size_t equals = text.rfind('=');
    double value = 0;
    if (equals == std::string::npos || equals == 0 ||
        !absl::SimpleAtod(text.substr(equals + 1), &value)) {
      return absl::InvalidArgumentError("--figure \"" + text +
                                        "\": needs NAME=VALUE, such as latency_ms=3.5");
    }
    if (!figures.insert({text.substr(0, equals), value}).second) {
      return absl::InvalidArgumentError("--figure \"" + text + "\": this name was given before");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> SendValue(ClientOptions options, const v1::ReportRequest& report,
                               const TellArguments& arguments) {
  v1::TellRequest request;
  request.set_trial_id(report.trial_id());
  request.set_value(*arguments.value);
  request.set_final(arguments.final);
  ESPALIER_RETURN_IF_ERROR(ReadFigures(arguments.figures, *request.mutable_extra()));
  if (report.has_step()) request.set_step(report.step());
  if (report.has_rank()) {
    request.set_rank(report.rank());
    request.set_ranks(report.ranks());
  }
  const bool counts_once = request.has_step() || request.final();
  ESPALIER_ASSIGN_OR_RETURN(
      const v1::TellResponse response,
      (CallUntilAnswered<api::Tell, v1::TellResponse>(std::move(options), request, counts_once)));
  if (!response.note().empty()) {
    std::fprintf(stderr, "tuner tell: %s\n", response.note().c_str());
  }
  return response.should_stop();
}

absl::Status Tell(const TellArguments& arguments) {
  if (arguments.should_save && (arguments.value || !arguments.step || arguments.final)) {
    return absl::InvalidArgumentError(
        "--should-save asks at a step, without a value: give --step N --should-save");
  }
  if (!arguments.value && !arguments.figures.empty()) {
    return absl::InvalidArgumentError("--figure goes with a value: give --value V");
  }
  if (!arguments.value && (!arguments.step || arguments.final)) {
    return absl::InvalidArgumentError(
        "no value is given: give --value V, or --step N alone to ask whether to go on");
  }
  v1::ReportRequest report;
  ESPALIER_ASSIGN_OR_RETURN(const std::int64_t trial, TrialIdOf(arguments));
  report.set_trial_id(trial);
  if (arguments.step.has_value()) report.set_step(*arguments.step);
  report.set_should_save(arguments.should_save);
  ESPALIER_RETURN_IF_ERROR(SetRank(arguments, report));
  ESPALIER_ASSIGN_OR_RETURN(ClientOptions options, arguments.service.Resolve());
  options.timeout_s = arguments.timeout_s;
  ESPALIER_ASSIGN_OR_RETURN(const bool yes, arguments.value
                                                ? SendValue(std::move(options), report, arguments)
                                                : Ask(std::move(options), report));
  if (yes) {
    std::puts(arguments.should_save ? "save" : "stop");
  } else if (!PrintsIntoLog()) {
    std::puts("continue");
  }
  return absl::OkStatus();
}

}  // namespace

VerbAction AddTell(CliCommand& command) {
  auto a = std::make_shared<TellArguments>();
  command.AddOption("--value", a->value,
                    "Value of the study's metric (nan and inf are allowed). The answer on stdout "
                    "is \"stop\" if the trial should end soon, else \"continue\", which is not "
                    "printed into a trial's log");
  command.AddOption("--step", a->step,
                    "Step that the value belongs to, 0 or more (default: the next one, from 1). "
                    "Without --value: asks whether to go on at the step");
  command.AddOption("--figure", a->figures,
                    "NAME=VALUE beside the value: another metric of the study, or whatever else is "
                    "to be kept of the step. May be given several times");
  command.AddFlag("--final", a->final, "The value is the trial's result");
  command.AddFlag("--should-save", a->should_save,
                  "With --step alone: asks whether to save and end. The answer is \"save\" or "
                  "\"continue\"");
  command.AddOption("--trial", a->trial, "The trial's id (default: ESPALIER_TRIAL_ID)").Positive();
  CliOption& rank = command
                        .AddOption("--rank", a->rank,
                                   "Which of the program's processes tells it, from 0, where a "
                                   "launcher has started several (default: RANK, within a trial)")
                        .NonNegative();
  CliOption& ranks =
      command
          .AddOption("--ranks", a->ranks, "How many they are (default: WORLD_SIZE, within a trial)")
          .Positive();
  rank.Needs(ranks);
  ranks.Needs(rank);
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
