// `tuner resume`: takes up a stopped or ended study again.

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "tuner/cli/connected_verb.h"
#include "tuner/cli/verb.h"
#include "tuner/cli/views/study_text.h"
#include "tuner/cli/views/table.h"

namespace espalier {
namespace {

struct ResumeArguments {
  ServiceArguments service;
  std::string study;
  std::optional<std::int64_t> max_trials;  // none: as it was
  std::optional<double> time_limit_s;      // likewise
};

absl::StatusOr<ExitCode> Resume(Client& client, const ResumeArguments& arguments) {
  if (arguments.max_trials && *arguments.max_trials < 1) {
    return absl::InvalidArgumentError(
        fmt::format("--trials {}: must be 1 or more", *arguments.max_trials));
  }
  if (arguments.time_limit_s && !(*arguments.time_limit_s > 0)) {
    return absl::InvalidArgumentError(
        fmt::format("--time-limit {}: must be more than 0 seconds", *arguments.time_limit_s));
  }
  v1::ResumeStudyRequest request;
  request.set_name(arguments.study);
  if (arguments.max_trials) request.set_max_trials(*arguments.max_trials);
  if (arguments.time_limit_s) request.set_time_limit_s(*arguments.time_limit_s);
  ESPALIER_ASSIGN_OR_RETURN(const v1::Study study, client.Call<api::ResumeStudy>(request));
  if (study.state() != v1::STUDY_RUNNING) {
    return Fail(
        "resume", ExitCode::kFailed,
        fmt::format("study {} does not go on: it is {} ({}) with {}; raise the limit that "
                    "ends it, --trials or --time-limit",
                    study.name(), StateName(study.state()), study.reason(), TrialCounts(study)));
  }
  std::printf("study %s is %s; %s\n", study.name().c_str(), StateName(study.state()).c_str(),
              TrialCounts(study).c_str());
  return ExitCode::kOk;
}

}  // namespace

VerbAction AddResume(CliCommand& command) {
  auto a = std::make_shared<ResumeArguments>();
  AddStudyName(command, a->study);
  a->service.AddWithLocalRunTo(command);
  command.AddOption("--trials", a->max_trials,
                    "New limit on the number of trials in all (default: unchanged)");
  command.AddOption("--time-limit", a->time_limit_s,
                    "New limit on the running time in seconds (default: unchanged)");
  return [a] {
    return WithClient("resume", a->study, a->service,
                      [a](Client& client) { return Resume(client, *a); });
  };
}

}  // namespace espalier
