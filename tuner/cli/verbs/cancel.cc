// `tuner cancel`: ends one trial.

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "tuner/cli/connected_verb.h"
#include "tuner/cli/follow.h"
#include "tuner/cli/verb.h"
#include "tuner/cli/views/study_text.h"

namespace espalier {
namespace {

struct CancelArguments {
  ServiceArguments service;
  std::string study;
  std::int64_t trial = 0;
  bool pruned = false;
  std::string reason;
};

absl::StatusOr<ExitCode> Cancel(Client& client, const CancelArguments& arguments) {
  ESPALIER_ASSIGN_OR_RETURN(const v1::StudyDetails details, Glance(client, arguments.study));
  ESPALIER_ASSIGN_OR_RETURN(const v1::Trial found, NamedTrial(details, arguments.trial));
  v1::CancelTrialRequest request;
  request.set_trial_id(found.id());
  request.set_state(arguments.pruned ? v1::TRIAL_PRUNED : v1::TRIAL_FAIL);
  request.set_reason(arguments.reason);
  ESPALIER_ASSIGN_OR_RETURN(const v1::TrialRecord trial, client.Call<api::CancelTrial>(request));
  std::printf("trial %ld is %s%s%s\n", static_cast<long>(trial.number()),
              StateName(trial.state()).c_str(), trial.reason().empty() ? "" : ": ",
              trial.reason().c_str());
  return ExitCode::kOk;
}

}  // namespace

VerbAction AddCancel(CliCommand& command) {
  auto a = std::make_shared<CancelArguments>();
  AddStudyName(command, a->study);
  a->service.AddWithLocalRunTo(command);
  AddTrialNumber(command, a->trial);
  command.AddFlag("--pruned", a->pruned,
                  "End it as PRUNED, with its last value (default: as FAIL)");
  command.AddOption("--reason", a->reason, "Why, for the study's record");
  return [a] {
    return WithClient("cancel", a->study, a->service,
                      [a](Client& client) { return Cancel(client, *a); });
  };
}

}  // namespace espalier
