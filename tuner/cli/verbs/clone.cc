// `tuner clone`: a trial that goes on from another one's checkpoint, with other parameters.

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/json/parse_json.h"
#include "nlohmann/json.hpp"
#include "tuner/cli/connected_verb.h"
#include "tuner/cli/follow.h"
#include "tuner/cli/verb.h"

namespace espalier {
namespace {

struct CloneArguments {
  ServiceArguments service;
  std::string study;
  std::int64_t trial = 0;
  std::vector<std::string> set;
};

// "lr=0.01": the value is JSON if it reads as such, else a text.
absl::StatusOr<nlohmann::json> ReadParameters(const std::vector<std::string>& assignments) {
  auto parameters = nlohmann::json::object();
  for (const std::string& assignment : assignments) {
    const std::size_t equals = assignment.find('=');
    if (equals == std::string::npos || equals == 0) {
      return absl::InvalidArgumentError(
          fmt::format("--set \"{}\": want name=value, like lr=0.01", assignment));
    }
    const std::string name = assignment.substr(0, equals);
    if (parameters.contains(name)) {
      return absl::InvalidArgumentError(fmt::format("--set: \"{}\" is given twice", name));
    }
    const std::string text = assignment.substr(equals + 1);
    const nlohmann::json value = ParseJson(text);
    parameters[name] = value.is_discarded() ? nlohmann::json(text) : value;
  }
  return parameters;
}

absl::StatusOr<ExitCode> Clone(Client& client, const CloneArguments& arguments) {
  ESPALIER_ASSIGN_OR_RETURN(const nlohmann::json set, ReadParameters(arguments.set));
  ESPALIER_ASSIGN_OR_RETURN(const v1::StudyDetails details, Glance(client, arguments.study));
  ESPALIER_ASSIGN_OR_RETURN(const v1::Trial parent, NamedTrial(details, arguments.trial));
  v1::CloneTrialRequest request;
  request.set_trial_id(parent.id());
  request.set_parameters(set.dump());
  ESPALIER_ASSIGN_OR_RETURN(const v1::TrialRecord trial, client.Call<api::CloneTrial>(request));
  std::printf("trial %ld is a clone of trial %ld; see it with: tuner show %s --trial %ld\n",
              static_cast<long>(trial.number()), static_cast<long>(parent.number()),
              arguments.study.c_str(), static_cast<long>(trial.number()));
  return ExitCode::kOk;
}

}  // namespace

VerbAction AddClone(CliCommand& command) {
  auto a = std::make_shared<CloneArguments>();
  AddStudyName(command, a->study);
  a->service.AddWithLocalRunTo(command);
  AddTrialNumber(command, a->trial);
  command
      .AddOption("--set", a->set,
                 "A parameter of the clone's own, such as lr=0.01; may be given several times")
      .Required();
  return [a] {
    return WithClient("clone", a->study, a->service,
                      [a](Client& client) { return Clone(client, *a); });
  };
}

}  // namespace espalier
