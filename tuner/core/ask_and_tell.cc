// Trials that clients create, run and end by themselves: what Optuna's storage is asked for.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tuner/core/core_impl.h"
#include "tuner/core/refusals.h"

namespace espalier {

void Core::Impl::On(const DeleteStudy& event) {
  const auto it = turn_.state().studies.find(event.study);
  if (it == turn_.state().studies.end()) {
    turn_.reply().status = NoStudy(event.study);
    return;
  }
  const Study& study = it->second;
  const auto of_study = [&](TrialId id) { return turn_.TrialAt(id).study == study.id; };
  const bool holds_slots =
      std::any_of(pool_.replicas.begin(), pool_.replicas.end(),
                  [&](const auto& entry) { return of_study(entry.second.trial); });
  if (!study.spec.ask_and_tell && (study.state == StudyState::kRunning || holds_slots)) {
    turn_.reply().status = absl::FailedPreconditionError(
        absl::StrCat("study \"", study.spec.name, "\" still ",
                     study.state == StudyState::kRunning ? "runs: stop it first"
                                                         : "holds slots: try again soon"));
    return;
  }
  DropCopiesOfStudy(study);
  for (const TrialId trial : study.trials) {
    live_.erase(trial);
    pool_.groups.erase(trial);
    promise_.erase(trial);
    held_.erase(trial);
    pool_.recovering.erase(trial);
    pool_.slots_touched.erase(trial);
    heard_of_.erase(trial);
  }
  plugins_.erase(study.id);
  promise_at_.erase(study.id);
  promise_stale_.erase(study.id);
  cost_check_.erase(study.id);
  curves_.Forget(study.id);
  suggestions_.erase(study.id);
  suggested_.erase(study.id);
  waiting_.erase(study.id);
  request_keys_.Forget(study.id);
  turn_.Emit(StudyDeleted{study.id, turn_.state().last_study, turn_.state().last_trial});
}

// Its trials, attributes and id stay, and clients at work go on. A name in use on the pool is also
// that of folders and of what programs were told.
void Core::Impl::On(const RenameStudy& event) {
  const auto it = turn_.state().studies.find(event.study);
  if (it == turn_.state().studies.end()) {
    turn_.reply().status = NoStudy(event.study);
    return;
  }
  const Study& study = it->second;
  if (!study.spec.ask_and_tell) {
    turn_.reply().status = absl::PermissionDeniedError(absl::StrCat(
        "study \"", study.spec.name, "\" runs on the tuner's pool and keeps its name"));
    return;
  }
  if (event.name == study.spec.name) return;
  if (turn_.state().FindStudy(event.name) != nullptr) {
    turn_.reply().status = absl::AlreadyExistsError(
        absl::StrCat("study \"", event.name, "\" exists already: choose another name"));
    return;
  }
  turn_.Emit(StudyRenamed{event.study, event.name, event.json});
}

void Core::Impl::On(const SetStudyAttribute& event) {
  if (!turn_.state().studies.contains(event.study)) {
    turn_.reply().status = NoStudy(event.study);
    return;
  }
  turn_.Emit(StudyAttributeSet{event.study, event.system, event.key, event.value});
}

void Core::Impl::On(const CreateTrial& event) {
  const auto it = turn_.state().studies.find(event.study);
  if (it == turn_.state().studies.end()) {
    turn_.reply().status = NoStudy(event.study);
    return;
  }
  const Study& study = it->second;
  if (!study.spec.ask_and_tell) {
    turn_.reply().status = RunsOnThePool(study);
    return;
  }
  turn_.reply().status = CheckRequestKey(study.id, kCreationKey, event.request_key);
  if (!turn_.reply().status.ok() || turn_.reply().existed) return;
  if (study.state != StudyState::kRunning) {
    turn_.reply().status = NotRunning(study);
    return;
  }
  TrialTemplate running;
  running.state = TrialState::kRunning;
  running.started = turn_.now();
  const TrialId id = CreateFrom(study.id, event.content ? *event.content : running);
  KeepRequestKey(id, kCreationKey, event.request_key);
  turn_.reply().trial = id;
}

TrialId Core::Impl::CreateFrom(StudyId study, const TrialTemplate& content) {
  const TrialId id(turn_.state().last_trial.value + 1);
  turn_.Emit(TrialCreated{id, study, std::ssize(turn_.StudyAt(study).trials), {}, turn_.now()});
  const Trial& trial = turn_.TrialAt(id);
  for (const auto& [suggestion, value] : content.parameters) Suggest(trial, suggestion, value);
  for (const auto& [step, value] : content.intermediate_values) {
    turn_.Emit(ValueSet{id, {step, value, 0, turn_.now(), 0}});
  }
  for (const auto& [key, value] : content.attributes.user) {
    turn_.Emit(TrialAttributeSet{id, false, key, value});
  }
  for (const auto& [key, value] : content.attributes.system) {
    turn_.Emit(TrialAttributeSet{id, true, key, value});
  }
  turn_.Emit(TrialTold{id, content.state, content.values, content.started, content.ended});
  HeardOf(id);
  return id;
}

// The trial, if it has not ended; else null, and the reply says why not.
const Trial* Core::Impl::OpenTrial(TrialId id) {
  const auto it = turn_.state().trials.find(id);
  if (it == turn_.state().trials.end()) {
    turn_.reply().status = NoTrial(id);
    return nullptr;
  }
  if (!Ended(it->second.state)) return &it->second;
  turn_.reply().status = HasEnded(it->second);
  return nullptr;
}

// The same of a trial that its client runs.
const Trial* Core::Impl::TrialToTell(TrialId id) {
  const Trial* trial = OpenTrial(id);
  if (trial == nullptr) return nullptr;
  if (const Study& study = turn_.StudyAt(trial->study); !study.spec.ask_and_tell) {
    turn_.reply().status = RunsOnThePool(study);
    return nullptr;
  }
  HeardOf(id);
  return trial;
}

void Core::Impl::On(const SuggestParameter& event) {
  const Trial* trial = TrialToTell(event.trial);
  if (trial == nullptr) return;
  turn_.reply().status = CheckKind(turn_.StudyAt(trial->study), event.suggestion);
  if (turn_.reply().status.ok()) Suggest(*trial, event.suggestion, event.value);
}

absl::Status Core::Impl::CheckKind(const Study& study, const Suggestion& suggestion) {
  IndexOf(study, suggestion);  // brings the index up to date
  const std::map<std::string, int>& first = suggestions_[study.id].first;
  const auto known = first.find(suggestion.name);
  if (known == first.end()) return absl::OkStatus();
  const Suggestion& before = study.suggestions[static_cast<std::size_t>(known->second)];
  if (before.kind == suggestion.kind) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "parameter \"", suggestion.name, "\" was drawn from ", before.distribution,
      " before: a study keeps the kind of distribution, the scale and the choices of a parameter, "
      "got ",
      suggestion.distribution));
}

// -1 if the study has not seen it.
int Core::Impl::IndexOf(const Study& study, const Suggestion& suggestion) {
  SuggestionIndex& index = suggestions_[study.id];
  for (std::size_t i = index.all.size(); i < study.suggestions.size(); ++i) {
    const Suggestion& known = study.suggestions[i];
    index.first.emplace(known.name, static_cast<int>(i));
    index.all.emplace(std::pair(known.name, known.distribution), static_cast<int>(i));
  }
  const auto it = index.all.find(std::pair(suggestion.name, suggestion.distribution));
  return it == index.all.end() ? -1 : it->second;
}

void Core::Impl::Suggest(const Trial& trial, const Suggestion& suggestion, double value) {
  const Study& study = turn_.StudyAt(trial.study);
  int index = IndexOf(study, suggestion);
  if (index < 0) {
    index = static_cast<int>(study.suggestions.size());
    turn_.Emit(SuggestionAdded{study.id, suggestion});
  }
  const auto same = std::find_if(
      trial.suggested.begin(), trial.suggested.end(), [&](const SuggestedValue& suggested) {
        return study.suggestions[static_cast<std::size_t>(suggested.suggestion)].name ==
               suggestion.name;
      });
  const int position = static_cast<int>(same - trial.suggested.begin());
  turn_.Emit(ParameterSuggested{trial.id, position, {index, value}});
}

// Notes on trials of the pool are welcome; ended trials keep what they have.
void Core::Impl::On(const SetTrialAttribute& event) {
  if (OpenTrial(event.trial) == nullptr) return;
  turn_.Emit(TrialAttributeSet{event.trial, event.system, event.key, event.value});
  HeardOf(event.trial);
  if (event.system && event.key == kTrialHeld) turn_.Wake();
}

void Core::Impl::On(const SetIntermediateValue& event) {
  const Trial* trial = TrialToTell(event.trial);
  if (trial != nullptr) SetValue(*trial, event.step, event.value);
}

void Core::Impl::On(const AcquireSlots& event) {
  if (const Trial* trial = TrialToTell(event.trial)) client_slots_.Acquire(*trial, event);
}

void Core::Impl::On(const RenewSlots& event) {
  if (const Trial* trial = TrialToTell(event.trial)) client_slots_.Renew(*trial);
}

void Core::Impl::On(const ReleaseSlots& event) {
  const auto it = turn_.state().trials.find(event.trial);
  // With the trial its slots have been given back.
  if (it != turn_.state().trials.end() && Ended(it->second.state)) return;
  if (TrialToTell(event.trial) == nullptr) return;
  client_slots_.GiveBack(event.trial, "given back by its client");
}

void Core::Impl::On(const SetTrialState& event) {
  const Trial* trial = TrialToTell(event.trial);
  if (trial == nullptr) return;
  const bool starts = event.state == TrialState::kRunning;
  if (starts && trial->state != TrialState::kWaiting) return;  // somebody else has it
  turn_.Emit(TrialTold{event.trial, event.state, event.values, starts ? turn_.now() : Time{},
                       Ended(event.state) ? turn_.now() : Time{}});
  HeardOf(event.trial);
  if (Ended(event.state)) AfterEndByClient(*trial);
  turn_.reply().updated = true;
}

}  // namespace espalier
