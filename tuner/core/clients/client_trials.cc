#include "tuner/core/clients/client_trials.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/shortened.h"
#include "search_spaces/formats/optuna/constraints.h"
#include "tuner/core/state/refusals.h"

namespace espalier {

namespace {

constexpr std::size_t kMostQuotedBytes = 100;  // of a value in a note

}  // namespace

void ClientTrials::TakeUp(const Trial& trial) {
  request_keys_.Take(trial);
  if (!turn_.StudyAt(trial.study).spec.by_clients()) return;
  NoteWaiting(trial);
  if (trial.state == TrialState::kRunning) HeardOf(trial.id);
}

void ClientTrials::Observe(const Change& change) {
  if (const auto* told = std::get_if<TrialTold>(&change)) NoteWaiting(turn_.TrialAt(told->id));
  if (const auto* deleted = std::get_if<StudyDeleted>(&change)) {
    suggestions_.erase(deleted->id);
    suggested_.erase(deleted->id);
    waiting_.erase(deleted->id);
    request_keys_.Forget(deleted->id);
    // Its trials are gone already.
    std::erase_if(heard_of_, [this](const auto& heard) {
      return !turn_.state().trials.contains(heard.first);
    });
  }
}

void ClientTrials::On(const CreateTrial& event) {
  const auto it = turn_.state().studies.find(event.study);
  if (it == turn_.state().studies.end()) {
    turn_.reply().status = NoStudy(event.study);
    return;
  }
  const Study& study = it->second;
  if (!study.spec.by_clients()) {
    turn_.reply().status = RunsOnThePool(study);
    return;
  }
  turn_.reply().status = CheckRequestKey(study.id, kCreationKey, event.request_key);
  if (!turn_.reply().status.ok() || turn_.reply().existed()) return;
  if (study.state != StudyState::kRunning) {
    turn_.reply().status = NotRunning(study);
    return;
  }
  TrialTemplate running;
  running.state = TrialState::kRunning;
  running.started = turn_.now();
  const TrialTemplate& content = event.content ? *event.content : running;
  // One that has ended is a record of what was done elsewhere.
  if (!Ended(content.state)) turn_.reply().status = MayCreateTrial(study);
  if (turn_.reply().status.ok() && content.state == TrialState::kRunning) {
    turn_.reply().status = MayRunOneMore(study);
  }
  if (!turn_.reply().status.ok()) return;
  const TrialId id = CreateFrom(study.id, content);
  KeepRequestKey(id, kCreationKey, event.request_key);
  turn_.reply().content = TrialReply{id};
}

TrialId ClientTrials::CreateFrom(StudyId study, const TrialTemplate& content) {
  const TrialId id(turn_.state().last_trial.value + 1);
  turn_.Emit(TrialCreated{.id = id,
                          .study = study,
                          .number = std::ssize(turn_.StudyAt(study).trials),
                          .parameters = {},
                          .at = turn_.now()});
  const Trial& trial = turn_.TrialAt(id);
  for (const auto& [suggestion, value] : content.parameters) Suggest(trial, suggestion, value);
  for (const auto& [step, value] : content.intermediate_values) {
    turn_.Emit(ValueReported{id, {.step = step, .value = value, .at = turn_.now()}});
  }
  SetAttributes(id, content.attributes);
  turn_.Emit(TrialTold{.id = id,
                       .state = content.state,
                       .values = content.values,
                       .started = content.started,
                       .ended = content.ended,
                       .source = StateSource::kImport});
  HeardOf(id);
  return id;
}

const Trial* ClientTrials::OpenTrial(TrialId id) {
  const auto it = turn_.state().trials.find(id);
  if (it == turn_.state().trials.end()) {
    turn_.reply().status = NoTrial(id);
    return nullptr;
  }
  if (!Ended(it->second.state)) return &it->second;
  turn_.reply().status = HasEnded(it->second);
  return nullptr;
}

const Trial* ClientTrials::TrialToTell(TrialId id) {
  const Trial* trial = OpenTrial(id);
  if (trial == nullptr) return nullptr;
  if (const Study& study = turn_.StudyAt(trial->study); !study.spec.by_clients()) {
    turn_.reply().status = RunsOnThePool(study);
    return nullptr;
  }
  HeardOf(id);
  return trial;
}

const Trial* ClientTrials::RunningTrial(TrialId id) {
  const Trial* trial = OpenTrial(id);
  if (trial == nullptr || trial->state == TrialState::kRunning) return trial;
  turn_.reply().status = absl::FailedPreconditionError(
      absl::StrCat("trial ", trial->number, " (id ", id.value, ") is ",
                   std::string(ToString(trial->state)), ", not RUNNING"));
  return nullptr;
}

void ClientTrials::On(const SuggestParameter& event) {
  const Trial* trial = TrialToTell(event.trial);
  if (trial == nullptr) return;
  turn_.reply().status = CheckKind(turn_.StudyAt(trial->study), event.suggestion);
  if (turn_.reply().status.ok()) Suggest(*trial, event.suggestion, event.value);
}

absl::Status ClientTrials::CheckKind(const Study& study, const Suggestion& suggestion) {
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
int ClientTrials::IndexOf(const Study& study, const Suggestion& suggestion) {
  SuggestionIndex& index = suggestions_[study.id];
  for (std::size_t i = index.all.size(); i < study.suggestions.size(); ++i) {
    const Suggestion& known = study.suggestions[i];
    index.first.emplace(known.name, static_cast<int>(i));
    index.all.emplace(std::pair(known.name, known.distribution), static_cast<int>(i));
  }
  const auto it = index.all.find(std::pair(suggestion.name, suggestion.distribution));
  return it == index.all.end() ? -1 : it->second;
}

void ClientTrials::Suggest(const Trial& trial, const Suggestion& suggestion, double value) {
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

void ClientTrials::SetAttribute(TrialId id, bool system, const std::string& key,
                                const std::string& value) {
  turn_.Emit(TrialAttributeSet{id, system, key, value});
  if (!system || !IsConstraintKey(key)) return;
  if (!turn_.StudyAt(turn_.TrialAt(id).study).spec.constraints.empty()) {
    turn_.Decide(
        turn_.TrialAt(id), DecisionKind::kStudy, 0, 0,
        absl::StrCat("\"", key, "\" counts for nothing: the study's \"constraints\" go by ",
                     "the figures that trials report"));
    return;
  }
  const std::vector<double> constraints = ConstraintsIn({{key, value}});
  const auto is_nan = [](double constraint) { return std::isnan(constraint); };
  if (std::none_of(constraints.begin(), constraints.end(), is_nan)) return;
  turn_.Decide(turn_.TrialAt(id), DecisionKind::kStudy, 0, 0,
               absl::StrCat("\"", key, "\" needs a number for each constraint, got ",
                            Shortened(value, kMostQuotedBytes),
                            ": the trial counts as one that breaks them"));
}

void ClientTrials::SetAttributes(TrialId id, const Attributes& attributes) {
  for (const auto& [key, value] : attributes.user) SetAttribute(id, false, key, value);
  for (const auto& [key, value] : attributes.system) SetAttribute(id, true, key, value);
}

void ClientTrials::On(const SetTrialAttribute& event) {
  if (OpenTrial(event.trial) == nullptr) return;
  SetAttribute(event.trial, event.system, event.key, event.value);
  HeardOf(event.trial);
}

void ClientTrials::On(const SetIntermediateValue& event) {
  const Trial* trial = TrialToTell(event.trial);
  if (trial != nullptr) SetValue(*trial, event.step, event.value);
}

void ClientTrials::On(const SetTrialState& event) {
  const Trial* trial = TrialToTell(event.trial);
  if (trial == nullptr) return;
  const bool starts = event.state == TrialState::kRunning;
  if (starts && trial->state != TrialState::kWaiting) return;  // somebody else has it
  if (!MayFollow(trial->state, event.state, StateSource::kClient)) {
    turn_.reply().status = absl::InvalidArgumentError(absl::StrCat(
        "trial ", trial->number, " (id ", trial->id.value, ") is run by its client, which says ",
        "RUNNING, WAITING, COMPLETE, PRUNED or FAIL of it, got ",
        std::string(ToString(event.state))));
    return;
  }
  if (starts) turn_.reply().status = MayStart(turn_.StudyAt(trial->study));
  if (!turn_.reply().status.ok()) return;
  turn_.Emit(TrialTold{.id = event.trial,
                       .state = event.state,
                       .values = event.values,
                       .started = starts ? turn_.now() : Time{},
                       .ended = Ended(event.state) ? turn_.now() : Time{}});
  HeardOf(event.trial);
  if (Ended(event.state)) AfterEnd(*trial);
  turn_.reply().content = TrialReply{event.trial, false, true};
}

}  // namespace espalier
