#include "adapters/optuna/messages.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/json/json_depth.h"
#include "search_spaces/formats/optuna/distribution.h"
#include "search_spaces/formats/optuna/trial_parameters.h"
#include "tuner/api/shown_attributes.h"
#include "tuner/core/state/private_attributes.h"
#include "tuner/core/state/refusals.h"
#include "tuner/core/state/study_facts.h"
#include "tuner/study_file/study_file.h"

namespace espalier::optuna_storage {

namespace {

constexpr char kTimeFormat[] = "%Y-%m-%d %H:%M:%E6S";
constexpr char kTimeToRead[] = "%Y-%m-%d %H:%M:%E*S";

absl::Status Unknown(std::string_view what, std::string_view problem) {
  return absl::UnknownError(absl::StrCat(std::string(what), ": ", std::string(problem)));
}

// Parameters that a client drew by itself.
void AddSuggested(const Trial& trial, const Study& study, optuna::Trial& message) {
  for (const SuggestedValue& suggested : trial.suggested) {
    const Suggestion& from = study.suggestions[static_cast<std::size_t>(suggested.suggestion)];
    (*message.mutable_params())[from.name] = suggested.value;
    (*message.mutable_distributions())[from.name] = from.distribution;
  }
}

// Parameters of a trial of the pool. What no search space describes has a distribution of this
// value alone: Optuna's clients keep an ended trial as they first read it, and a range of what was
// observed until then would differ between trials.
void AddParameters(const Trial& trial, const Study& study, optuna::Trial& message) {
  for (OptunaParameter& parameter : OptunaParameters(study.spec.space).Of(trial.parameters)) {
    (*message.mutable_params())[parameter.name] = parameter.stored;
    (*message.mutable_distributions())[parameter.name] = std::move(parameter.distribution);
  }
}

// To a study's message or a trial's.
template <typename Message>
void AddAttributes(const Attributes& attributes, Message& message) {
  message.mutable_user_attributes()->insert(attributes.user.begin(), attributes.user.end());
  message.mutable_system_attributes()->insert(attributes.system.begin(), attributes.system.end());
}

}  // namespace

optuna::StudyDirection ToMessage(Direction direction) {
  return direction == Direction::kMinimize ? optuna::MINIMIZE : optuna::MAXIMIZE;
}

optuna::TrialState ToMessage(TrialState state) {
  switch (state) {
    case TrialState::kWaiting:
      return optuna::WAITING;
    case TrialState::kRunning:
    case TrialState::kPaused:
      return optuna::RUNNING;
    case TrialState::kComplete:
      return optuna::COMPLETE;
    case TrialState::kPruned:
      return optuna::PRUNED;
    case TrialState::kFail:
      return optuna::FAIL;
  }
  return optuna::RUNNING;
}

optuna::Study ToMessage(const Study& study) {
  optuna::Study message;
  message.set_study_id(study.id.value);
  message.set_study_name(study.spec.name);
  for (const Direction direction : study.spec.directions) {
    message.add_directions(ToMessage(direction));
  }
  AddAttributes(ShownAttributes(study), message);
  return message;
}

optuna::Trial ToMessage(const Trial& trial, const Study& study) {
  optuna::Trial message;
  message.set_trial_id(trial.id.value);
  message.set_number(trial.number);
  // Optuna compares the values of all COMPLETE trials, and knows none without.
  if (CompleteWithoutValue(study, trial)) {
    message.set_state(optuna::FAIL);
  } else {
    message.set_state(ToMessage(trial.state));
    if (trial.value) message.add_values(*trial.value);
  }
  for (const double value : trial.other_values) message.add_values(value);
  message.set_datetime_start(ToLocalTime(trial.started));
  message.set_datetime_complete(ToLocalTime(trial.ended));
  AddParameters(trial, study, message);
  AddSuggested(trial, study, message);
  AddAttributes(ShownAttributes(trial, /*shows_secrets=*/false), message);
  for (const IntermediateValue& value : trial.values) {
    (*message.mutable_intermediate_values())[value.step] = value.value;
  }
  return message;
}

absl::StatusOr<TrialState> FromMessage(optuna::TrialState state) {
  constexpr TrialState kByNumber[] = {TrialState::kRunning, TrialState::kComplete,
                                      TrialState::kPruned, TrialState::kFail, TrialState::kWaiting};
  const int number = state;
  if (number >= 0 && number < std::ssize(kByNumber)) return kByNumber[number];
  return Unknown("state", absl::StrCat("needs 0 (RUNNING) to 4 (WAITING), got ", number));
}

absl::StatusOr<Suggestion> MakeSuggestion(const std::string& name,
                                          const std::string& distribution) {
  const absl::Status depth = CheckJsonDepth(distribution);
  const absl::StatusOr<OptunaDistribution> parsed =
      depth.ok() ? ParseOptunaDistribution(distribution) : depth;
  if (!parsed.ok()) {
    return Unknown(absl::StrCat("parameter \"", name, "\""),
                   std::string(parsed.status().message()));
  }
  return Suggestion{name, distribution, parsed->kind};
}

absl::Status CheckAttribute(const std::string& key, const std::string& value) {
  absl::Status status = CheckJsonDepth(value);
  if (status.ok()) status = CheckPythonJson(value);
  if (status.ok()) return status;
  return Unknown(absl::StrCat("attribute \"", key, "\""), std::string(status.message()));
}

absl::Status CheckSystemAttribute(const std::string& key, const std::string& value) {
  return IsPrivateAttribute(key) ? PrivateAttribute(key) : CheckAttribute(key, value);
}

absl::StatusOr<std::shared_ptr<const TrialTemplate>> FromMessage(const optuna::Trial& message) {
  auto content = std::make_shared<TrialTemplate>();
  ESPALIER_ASSIGN_OR_RETURN(content->state, FromMessage(message.state()));
  content->values.assign(message.values().begin(), message.values().end());
  ESPALIER_ASSIGN_OR_RETURN(content->started, FromLocalTime(message.datetime_start()));
  ESPALIER_ASSIGN_OR_RETURN(content->ended, FromLocalTime(message.datetime_complete()));
  // A map comes in no order; one is as good as another.
  std::map<std::string, double> parameters(message.params().begin(), message.params().end());
  for (const auto& [name, value] : parameters) {
    const auto distribution = message.distributions().find(name);
    if (distribution == message.distributions().end()) {
      return Unknown(absl::StrCat("parameter \"", name, "\""), "has no distribution");
    }
    ESPALIER_ASSIGN_OR_RETURN(Suggestion suggestion, MakeSuggestion(name, distribution->second));
    content->parameters.emplace_back(std::move(suggestion), value);
  }
  for (const auto& [key, value] : message.user_attributes()) {
    ESPALIER_RETURN_IF_ERROR(CheckAttribute(key, value));
    content->attributes.user.emplace(key, value);
  }
  for (const auto& [key, value] : message.system_attributes()) {
    ESPALIER_RETURN_IF_ERROR(CheckSystemAttribute(key, value));
    content->attributes.system.emplace(key, value);
  }
  content->intermediate_values.insert(message.intermediate_values().begin(),
                                      message.intermediate_values().end());
  return content;
}

absl::StatusOr<StudySpec> MakeSpec(const optuna::CreateNewStudyRequest& request) {
  std::vector<Direction> directions;
  for (const int direction : request.directions()) {
    if (!optuna::StudyDirection_IsValid(direction)) {
      return Unknown("directions",
                     absl::StrCat("needs 0 (MINIMIZE) or 1 (MAXIMIZE), got ", direction));
    }
    directions.push_back(direction == optuna::MINIMIZE ? Direction::kMinimize
                                                       : Direction::kMaximize);
  }
  return StudyOfClients(request.study_name(), std::move(directions));
}

std::string ToLocalTime(Time time) {
  if (time == Time{}) return "";
  return absl::FormatTime(kTimeFormat, absl::FromUnixMicros(time.us), absl::LocalTimeZone());
}

absl::StatusOr<Time> FromLocalTime(const std::string& text) {
  if (text.empty()) return Time{};
  absl::Time time;
  std::string error;
  if (!absl::ParseTime(kTimeToRead, text, absl::LocalTimeZone(), &time, &error)) {
    return Unknown("time",
                   absl::StrCat("needs YYYY-MM-DD hh:mm:ss.ffffff, got \"", text, "\": ", error));
  }
  return Time{absl::ToUnixMicros(time)};
}

}  // namespace espalier::optuna_storage
