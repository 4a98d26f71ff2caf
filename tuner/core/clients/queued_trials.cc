#include "tuner/core/clients/queued_trials.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tuner/core/pool/checkpoint_copies.h"
#include "tuner/core/state/refusals.h"
#include "tuner/core/trials/clone.h"

namespace espalier {

namespace {

absl::Status CheckVariablesGiven(const Study& study, const EnqueueTrial& event) {
  if (!event.reads_variables) return absl::OkStatus();
  const absl::Status status = CheckVariables(event.fixed);
  if (status.ok()) return status;
  return absl::InvalidArgumentError(
      absl::StrCat("study \"", study.spec.name, "\": parameters ", std::string(status.message())));
}

// All of the space that is active, where there is one, and nothing else.
absl::Status CheckGiven(const Study& study, const EnqueueTrial& event) {
  const SearchSpace& space = study.spec.space;
  const Parameters& given = event.fixed;
  if (space.dimensions().empty()) return CheckVariablesGiven(study, event);
  std::vector<std::string> missing;
  for (std::size_t i = 0; i < space.dimensions().size(); ++i) {
    const std::string& name = space.dimensions()[i].name;
    if (space.IsActive(i, given) && Find(given, name) == nullptr) missing.push_back(name);
  }
  if (missing.empty()) return space.Validate(given);
  return absl::InvalidArgumentError(
      absl::StrCat("study \"", study.spec.name, "\" draws nothing: parameter \"",
                   absl::StrJoin(missing, "\", \""), "\" is needed too"));
}

// Those of the space that are active with what is set, from there or from the parent.
absl::StatusOr<Parameters> InSpace(const Trial& parent, const Parameters& set,
                                   const SearchSpace& space) {
  Parameters all;
  for (std::size_t i = 0; i < space.dimensions().size(); ++i) {
    const std::string& name = space.dimensions()[i].name;
    const ParameterValue* value = Find(set, name);
    if (!space.IsActive(i, all)) {
      if (value != nullptr) all.push_back({name, *value});  // Validate says why it cannot be
      continue;
    }
    if (value == nullptr) value = Find(parent.parameters, name);
    if (value == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          "parameter \"", name, "\" is needed too, which trial ", parent.number, " does not have"));
    }
    all.push_back({name, *value});
  }
  for (const Parameter& one : set) {
    if (Find(all, one.name) == nullptr) all.push_back(one);  // Validate says that it is unknown
  }
  ESPALIER_RETURN_IF_ERROR(space.Validate(all));
  return all;
}

absl::StatusOr<Parameters> ParametersOfClone(const Trial& parent, const Study& study,
                                             const Parameters& set) {
  if (set.empty()) {
    return absl::InvalidArgumentError(
        "a clone has at least one parameter of its own: none is given");
  }
  Parameters all = parent.parameters;
  if (!study.spec.space.dimensions().empty()) {
    ESPALIER_ASSIGN_OR_RETURN(all, InSpace(parent, set, study.spec.space));
  } else {
    for (const Parameter& one : set) {
      const auto at = std::find_if(all.begin(), all.end(),
                                   [&one](const Parameter& p) { return p.name == one.name; });
      if (at == all.end()) {
        return absl::InvalidArgumentError(
            absl::StrCat("trial ", parent.number, " has no parameter \"", one.name, "\""));
      }
      at->value = one.value;
    }
  }
  const auto same = [](const Parameter& a, const Parameter& b) {
    return a.name == b.name && SameValue(a.value, b.value);
  };
  if (std::ranges::equal(all, parent.parameters, same)) {
    return absl::InvalidArgumentError(
        absl::StrCat("trial ", parent.number, " has these parameters itself"));
  }
  return all;
}

}  // namespace

void QueuedTrials::On(const EnqueueTrial& event) {
  const Study* study = turn_.state().FindStudy(event.study);
  if (study != nullptr && study->spec.queued()) {
    EnqueueOnPool(*study, event);
  } else {
    clients_.CreateWaiting(event.study, event.fixed,
                           {event.user_attributes, event.system_attributes}, event.request_key);
  }
}

void QueuedTrials::EnqueueOnPool(const Study& study, const EnqueueTrial& event) {
  absl::Status& status = turn_.reply().status;
  status = clients_.CheckRequestKey(study.id, kCreationKey, event.request_key);
  if (!status.ok() || turn_.reply().existed()) return;
  if (study.state != StudyState::kRunning) {
    status = NotRunning(study);
    return;
  }
  status = CheckGiven(study, event);
  if (status.ok()) status = clients_.MayCreateTrial(study);
  if (!status.ok()) return;
  const TrialId id(turn_.state().last_trial.value + 1);
  turn_.Emit(TrialCreated{.id = id,
                          .study = study.id,
                          .number = std::ssize(study.trials),
                          .parameters = event.fixed,
                          .at = turn_.now()});
  for (const auto& [key, value] : event.user_attributes) {
    turn_.Emit(TrialAttributeSet{id, false, key, value});
  }
  for (const auto& [key, value] : event.system_attributes) {
    turn_.Emit(TrialAttributeSet{id, true, key, value});
  }
  if (!event.environment.empty()) turn_.Emit(TrialEnvironmentSet{id, event.environment});
  clients_.KeepRequestKey(id, kCreationKey, event.request_key);
  turn_.Wake();
  turn_.reply().content = TrialReply{id};
}

// Null, with the reason in the reply: there is none, or its client runs it.
const Trial* QueuedTrials::TrialOfPool(TrialId id) {
  const auto it = turn_.state().trials.find(id);
  if (it == turn_.state().trials.end()) {
    turn_.reply().status = NoTrial(id);
    return nullptr;
  }
  if (const Study& study = turn_.StudyAt(it->second.study); study.spec.by_clients()) {
    turn_.reply().status = absl::PermissionDeniedError(
        absl::StrCat("trial ", it->second.number, " of study \"", study.spec.name,
                     "\" is run by its client, which alone can end it"));
    return nullptr;
  }
  turn_.reply().content = TrialReply{id};
  return &it->second;
}

void QueuedTrials::On(const CancelTrial& event) {
  if (event.state != TrialState::kPruned && event.state != TrialState::kFail) {
    turn_.reply().status = absl::InvalidArgumentError(absl::StrCat(
        "a trial is cancelled as PRUNED or FAIL, got ", std::string(ToString(event.state))));
    return;
  }
  const Trial* trial = TrialOfPool(event.trial);
  if (trial == nullptr || Ended(trial->state)) return;
  std::string reason = event.reason;
  if (event.state == TrialState::kFail) {
    reason = reason.empty() ? "cancelled by the user" : absl::StrCat("cancelled: ", reason);
  } else if (reason.empty()) {
    reason = "stopped early by the user";
  }
  std::optional<double> last;
  if (event.state == TrialState::kPruned && !trial->values.empty()) {
    last = trial->values.back().value;
  }
  trials_.EndTrial(trial->id, event.state, reason, last, {}, event.state == TrialState::kFail);
  turn_.reply().content = TrialReply{event.trial, false, true};
}

absl::Status QueuedTrials::MayBeCloned(const Trial& trial, const Study& study) const {
  const std::string which =
      absl::StrCat("trial ", trial.number, " of study \"", study.spec.name, "\"");
  if (study.spec.by_clients()) {
    return absl::FailedPreconditionError(absl::StrCat(
        which,
        " is run by its client, and no checkpoint of it is known: trials of the pool can be "
        "cloned"));
  }
  if (Ended(trial.state)) {
    return absl::FailedPreconditionError(absl::StrCat(which, " has ended as ",
                                                      std::string(ToString(trial.state)),
                                                      ": a trial can be cloned until it ends"));
  }
  if (trial.attributes.system.contains(kTrialParameters)) {
    return absl::FailedPreconditionError(absl::StrCat(
        which,
        " was enqueued with its parameters as one text, of which no part can be changed: "
        "enqueue another one"));
  }
  if (pool_.HasComeToTheEnd(trial)) {
    return absl::FailedPreconditionError(
        absl::StrCat(which, " has come to its last step, ", trial.values.back().step,
                     ": a clone would have nothing left to train"));
  }
  if (trials_.SavesWhenAsked(trial.id)) return absl::OkStatus();
  if (trial.checkpoint.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(which, " has saved no checkpoint yet, with which a clone could begin"));
  }
  // A program of its own writes there when it likes: what is copied then may be of two moments.
  if (NewestAsFile(trial).name.empty() && trial.state == TrialState::kRunning) {
    return absl::FailedPreconditionError(absl::StrCat(
        which,
        " saves in files of its own, which may change while they are copied: it can be "
        "cloned while it is paused, or at any time where its program asks whether to save "
        "(trial.should_save, tuner tell --should-save) or its study has \"resize\": \"restart\""));
  }
  return absl::OkStatus();
}

// Clones are beside the trials of which the study has a number: whoever wants one has asked for it.
void QueuedTrials::On(const CloneTrial& event) {
  absl::Status& status = turn_.reply().status;
  const auto found = turn_.state().trials.find(event.parent);
  if (found == turn_.state().trials.end()) {
    status = NoTrial(event.parent);
    return;
  }
  const Trial& parent = found->second;
  const Study& study = turn_.StudyAt(parent.study);
  status = clients_.CheckRequestKey(study.id, kCreationKey, event.request_key);
  if (!status.ok() || turn_.reply().existed()) return;
  status = MayBeCloned(parent, study);
  if (status.ok() && study.state != StudyState::kRunning) status = NotRunning(study);
  if (status.ok()) status = clients_.HasTimeLeft(study);
  if (!status.ok()) return;
  absl::StatusOr<Parameters> parameters = ParametersOfClone(parent, study, event.set);
  if (!parameters.ok()) {
    status = absl::InvalidArgumentError(absl::StrCat(
        "study \"", study.spec.name, "\": ", std::string(parameters.status().message())));
    return;
  }
  const TrialId id = EmitClone(turn_, parent, *std::move(parameters));
  clients_.KeepRequestKey(id, kCreationKey, event.request_key);
  turn_.reply().content = TrialReply{id};
}

void QueuedTrials::On(const HoldTrial& event) {
  const Trial* trial = clients_.OpenTrial(event.trial);
  if (trial == nullptr || TrialOfPool(event.trial) == nullptr) return;
  if (trial->held == event.held) return;
  turn_.Emit(TrialHeld{trial->id, event.held});
  turn_.Wake();
}

void QueuedTrials::On(const SetTrialEnvironment& event) {
  const Trial* trial = clients_.OpenTrial(event.trial);
  if (trial == nullptr || TrialOfPool(event.trial) == nullptr) return;
  turn_.Emit(TrialEnvironmentSet{trial->id, event.environment});
}

void QueuedTrials::On(const RecordReport& event) {
  const Trial* trial = TrialOfPool(event.trial);
  if (trial == nullptr) return;
  if (Ended(trial->state) || trial->state == TrialState::kWaiting) {
    turn_.reply().status = absl::FailedPreconditionError(
        absl::StrCat("trial ", trial->number, " is ", std::string(ToString(trial->state)),
                     " and reports nothing"));
    return;
  }
  const auto& known = trial->attributes.system;
  if (known.contains(event.key)) return;
  if (std::ssize(known) >= kMaxReportsPerTrial) {
    turn_.reply().status = HasReportedTheMost(*trial);
    return;
  }
  turn_.Emit(TrialAttributeSet{trial->id, true, event.key, event.value});
  turn_.reply().content = TrialReply{event.trial, false, true};
  if (!event.number) return;
  const bool finite = std::isfinite(*event.number);
  if (!event.step) {
    // A trial that has diverged must not end with the value that it had before.
    turn_.Emit(FinalValueReported{
        trial->id, finite ? *event.number : std::numeric_limits<double>::quiet_NaN()});
  } else if (finite && trial->state == TrialState::kRunning) {
    trials_.TakeValue(trial->id, {.step = *event.step, .value = *event.number, .at = turn_.now()});
  }
}

}  // namespace espalier
