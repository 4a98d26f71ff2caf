// `tuner pin`: holds a trial at a number of slots.

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "tuner/cli/connected_verb.h"
#include "tuner/cli/verb.h"
#include "tuner/cli/views/text.h"

namespace espalier {
namespace {

struct PinArguments {
  ServiceArguments service;
  std::string study;
  std::int64_t trial = 0;
  int slots = 0;
};

absl::StatusOr<ExitCode> Pin(Client& client, const PinArguments& arguments) {
  if (arguments.slots < 0) {
    return absl::InvalidArgumentError(
        fmt::format("--slots {}: must be 0 (to unpin the trial) or more", arguments.slots));
  }
  v1::PinTrialRequest request;
  request.set_study(arguments.study);
  request.set_trial_number(arguments.trial);
  request.set_slots(arguments.slots);
  ESPALIER_ASSIGN_OR_RETURN(const v1::Trial trial, client.Call<api::PinTrial>(request));
  if (trial.pinned_slots() == 0) {
    std::printf("trial %ld is no longer pinned\n", static_cast<long>(trial.number()));
  } else if (trial.slots() == trial.pinned_slots()) {
    std::printf("trial %ld is pinned to %s\n", static_cast<long>(trial.number()),
                Count(trial.pinned_slots(), "slot").c_str());
  } else {
    std::printf("trial %ld is pinned to %s: it has %d now, and will have %d as soon as it can\n",
                static_cast<long>(trial.number()), Count(trial.pinned_slots(), "slot").c_str(),
                trial.slots(), trial.pinned_slots());
  }
  return ExitCode::kOk;
}

}  // namespace

VerbAction AddPin(CliCommand& command) {
  auto a = std::make_shared<PinArguments>();
  AddStudyName(command, a->study);
  a->service.AddWithLocalRunTo(command);
  AddTrialNumber(command, a->trial);
  command.AddOption("--slots", a->slots, "Number of slots; 0: unpin the trial").Required();
  return [a] {
    return WithClient("pin", a->study, a->service, [a](Client& client) { return Pin(client, *a); });
  };
}

}  // namespace espalier
