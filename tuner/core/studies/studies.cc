#include "tuner/core/studies/studies.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/pool/pool.h"
#include "base/check.h"
#include "tuner/core/clients/request_keys.h"
#include "tuner/core/state/refusals.h"
#include "tuner/core/state/study_facts.h"
#include "tuner/core/studies/like.h"
#include "tuner/core/studies/pool_policy.h"
#include "tuner/core/studies/validate.h"

namespace espalier {

namespace {

// The last moment the record of a study speaks of: how far its clock surely ran.
Time LastSeen(const TunerState& state, const Study& study) {
  Time last = study.running_since;
  for (const TrialId id : study.trials) {
    const Trial& trial = state.trials.at(id);
    last = std::max({last, trial.created, trial.started, trial.ended});
    if (!trial.values.empty()) last = std::max(last, trial.values.back().at);
    if (!trial.spans.empty())
      last = std::max({last, trial.spans.back().from, trial.spans.back().to});
  }
  if (!study.decisions.empty()) last = std::max(last, study.decisions.back().at);
  return last;
}

bool MadeBy(const Study& study, const std::string& request_key) {
  if (request_key.empty()) return false;
  const auto made = study.attributes.system.find(kCreationKey);
  return made != study.attributes.system.end() && made->second == RequestKeyJson(request_key);
}

absl::Status CanAsk(const StudySpec& spec, const CoreOptions& options) {
  if (options.asks_outside) return absl::OkStatus();
  const auto sampler = MakeSampler(spec.sampler.name, spec.sampler.options);
  if (!sampler.ok() || (*sampler)->outside() == nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("\"sampler\": \"", spec.sampler.name,
                   "\" needs a Python with Optuna, which --optuna-python of `tuner serve` or "
                   "`tuner run` names"));
}

}  // namespace

void Studies::SetClocksAfterRestart() {
  pool_.recovery_ends = After(turn_.now(), options_.lease_s);
  std::vector<Change> changes;
  for (const auto& [id, study] : turn_.state().studies) {
    if (study.state != StudyState::kRunning) continue;
    const Time last = std::min(LastSeen(turn_.state(), study), turn_.now());
    const double active_s =
        study.active_s + std::max(0.0, SecondsBetween(study.running_since, last));
    changes.emplace_back(StudyClockSet{id, active_s, turn_.now()});
  }
  for (Change& change : changes) turn_.Emit(std::move(change));
}

void Studies::Create(const CreateStudy& event) {
  absl::Status status = Validate(event.spec);
  if (status.ok()) status = CanAsk(event.spec, options_);
  if (!status.ok()) {
    turn_.reply().status = std::move(status);
    return;
  }
  if (const Study* existing = turn_.state().FindStudy(event.spec.name); existing != nullptr) {
    turn_.reply().content = StudyReply{existing->id, true};
    if (MadeBy(*existing, event.request_key)) return;
    if (!event.exist_ok) {
      turn_.reply().status = absl::AlreadyExistsError(
          absl::StrCat("study \"", event.spec.name, "\" exists already: choose another name"));
    } else if (DefinitionOf(*existing) != event.spec) {
      turn_.reply().status = absl::FailedPreconditionError(
          absl::StrCat("study \"", event.spec.name,
                       "\" exists with another definition: choose another name or database"));
    }
    return;
  }
  if (!event.spec.like.study.empty() && event.spec.like.trials.empty()) {
    turn_.reply().status = absl::InvalidArgumentError(absl::StrCat(
        "\"like\": the trials of study \"", event.spec.like.study, "\" are to be given with it"));
    return;
  }
  if (!event.request_key.empty()) {
    turn_.reply().status = CheckKey(event.request_key);
    if (!turn_.reply().status.ok()) return;
  }
  const StudyId id(turn_.state().last_study.value + 1);
  turn_.Emit(StudyCreated{id, event.spec, turn_.now()});
  if (!event.request_key.empty()) {
    turn_.Emit(StudyAttributeSet{id, true, kCreationKey, RequestKeyJson(event.request_key)});
  }
  turn_.reply().content = StudyReply{id};
  if (const std::string like = LikeText(event.spec); !like.empty()) {
    turn_.Decide(id, -1, DecisionKind::kStudy, 0, 0, like);
  }
  if (!event.note.empty()) turn_.Decide(id, -1, DecisionKind::kStudy, 0, 0, event.note);
  const std::optional<PluginSpec> own = PoolPolicy(options_, turn_.state());
  if (own && event.spec.names_policy && event.spec.policy != *own) {
    turn_.Decide(id, -1, DecisionKind::kStudy, 0, 0,
                 absl::StrCat("its policy ", TextOf(event.spec.policy),
                              " is not followed: the pool is divided by ", TextOf(*own)));
  }
  if (!event.spec.by_clients()) turn_.Wake();
}

void Studies::On(const StopStudy& event) {
  const Study* study = turn_.state().FindStudy(event.name);
  if (study == nullptr) {
    turn_.reply().status = NoStudy(event.name);
    return;
  }
  turn_.reply().content = StudyReply{study->id};
  StopFor(study->id, "stopped by the user");
}

void Studies::StopFor(StudyId id, const std::string& reason) {
  if (turn_.StudyAt(id).state != StudyState::kRunning) return;  // stopped or ended: nothing to do
  turn_.Decide(id, -1, DecisionKind::kStudy, 0, 0, reason);
  turn_.Emit(StudyStateChanged{id, StudyState::kStopped, reason, turn_.now()});
  for (const auto& [trial, live] : std::map(pool_.live)) {
    if (live.trial->study == id) trials_.PauseTrial(trial, "its study was stopped");
  }
  turn_.Wake();
}

void Studies::On(const ResumeStudy& event) {
  const Study* found = turn_.state().FindStudy(event.name);
  if (found == nullptr) {
    turn_.reply().status = NoStudy(event.name);
    return;
  }
  const StudyId id = found->id;
  const std::int64_t most = event.max_trials > 0 ? event.max_trials : found->spec.max_trials;
  const bool all_ended = found->state != StudyState::kRunning && most > 0 &&
                         found->counted() >= most && !AnyMayRun(*found);
  // Those of the pool end again by themselves; with clients nothing ever happens to it.
  if (found->spec.by_clients() && all_ended) {
    turn_.reply().status = absl::FailedPreconditionError(absl::StrCat(
        "study \"", event.name, "\" has all its ", most,
        " trials, and all have ended: resume it with more than ", found->trials.size()));
    return;
  }
  turn_.reply().content = StudyReply{id};
  // A limit below what has run would be kept for nothing.
  if (all_ended && event.max_trials > 0 && found->state != StudyState::kStopped) return;
  if (event.max_trials > 0 || event.time_limit_s > 0) {
    turn_.Emit(StudyLimitsChanged{
        id, most, event.time_limit_s > 0 ? event.time_limit_s : found->spec.time_limit_s});
  }
  if (found->state == StudyState::kRunning) return;
  turn_.Decide(id, -1, DecisionKind::kStudy, 0, 0, "resumed by the user");
  turn_.Emit(StudyStateChanged{id, StudyState::kRunning, "", turn_.now()});
  joins_.TryAgainOf(id, "its study was resumed");  // with another program, perhaps
  turn_.Wake();
}

void Studies::On(const DeleteStudy& event) {
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
  if (!study.spec.by_clients() && (study.state == StudyState::kRunning || holds_slots)) {
    turn_.reply().status = absl::FailedPreconditionError(
        absl::StrCat("study \"", study.spec.name, "\" still ",
                     study.state == StudyState::kRunning ? "runs: stop it first"
                                                         : "holds slots: try again soon"));
    return;
  }
  checkpoints_.DropCopiesOfStudy(study);
  turn_.Emit(StudyDeleted{study.id, turn_.state().last_study, turn_.state().last_trial});
}

// Its trials, attributes and id stay, and clients at work go on. A name in use on the pool is also
// that of folders and of what programs were told.
void Studies::On(const RenameStudy& event) {
  const auto it = turn_.state().studies.find(event.study);
  if (it == turn_.state().studies.end()) {
    turn_.reply().status = NoStudy(event.study);
    return;
  }
  const Study& study = it->second;
  if (!study.spec.by_clients()) {
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
  turn_.Emit(StudyRenamed{event.study, event.name});
}

void Studies::On(const SetStudyAttribute& event) {
  if (!turn_.state().studies.contains(event.study)) {
    turn_.reply().status = NoStudy(event.study);
    return;
  }
  turn_.Emit(StudyAttributeSet{event.study, event.system, event.key, event.value});
}

void Studies::On(const PinTrial& event) {
  const Study* study = turn_.state().FindStudy(event.study);
  if (study == nullptr) {
    turn_.reply().status = NoStudy(event.study);
    return;
  }
  if (event.trial_number < 0 || event.trial_number >= std::ssize(study->trials)) {
    turn_.reply().status = absl::NotFoundError(absl::StrCat(
        "study \"", event.study, "\" has no trial ", event.trial_number,
        study->trials.empty() ? "; none has been created yet"
                              : absl::StrCat("; its trials are 0 to ", study->trials.size() - 1)));
    return;
  }
  const Trial& trial = turn_.TrialAt(study->trials[static_cast<std::size_t>(event.trial_number)]);
  turn_.reply().content = TrialReply{trial.id};
  if (Ended(trial.state)) {
    turn_.reply().status = absl::FailedPreconditionError(absl::StrCat(
        "trial ", event.trial_number, " has ended (", std::string(ToString(trial.state)),
        "): only a live trial can be held at a number of slots"));
    return;
  }
  if (event.slots < 0 || event.slots > std::max(1, pool_.SlotsTotal())) {
    turn_.reply().status = absl::InvalidArgumentError(absl::StrCat(
        "slots must be 0 (back to the allocator) to ", pool_.SlotsTotal(), ", got ", event.slots));
    return;
  }
  const StudySpec& spec = study->spec;
  if (event.slots > 0 && !spec.HasSize(event.slots)) {
    turn_.reply().status = absl::InvalidArgumentError(
        absl::StrCat("trial ", event.trial_number, " cannot have ", SlotsText(event.slots),
                     ": its study's sizes are ", SizesText(spec.slot_sizes)));
    return;
  }
  if (event.slots > 1 && !spec.resize_by_restart && HasProvenInelastic(turn_.state(), *study)) {
    turn_.reply().status = absl::FailedPreconditionError(
        absl::StrCat("trial ", event.trial_number,
                     " runs a program that is not elastic: it keeps the ", study->spec.min_slots,
                     study->spec.min_slots == 1 ? " slot" : " slots", " that it was started with"));
    return;
  }
  if (trial.pinned_slots != event.slots) turn_.Emit(TrialPinned{trial.id, event.slots});
  if (event.slots > 0) {
    joins_.TryAgain(trial.id, absl::StrCat("a user has pinned it to ", event.slots, " slots"));
  }
  turn_.Wake();
}

void Studies::EndThoseOverLimits() {
  for (const auto& [id, reason] : limits_.Over()) {
    trials_.ConcludeStudy(id, reason);
  }
}

bool Studies::AnyMayRun(const Study& study) const {
  return std::any_of(pool_.live.begin(), pool_.live.end(), [&](const auto& entry) {
    return entry.second.study == &study && !trials_.Held(entry.first);
  });
}

bool Studies::AnyHeldByClient(const Study& study) const {
  return std::any_of(pool_.live.begin(), pool_.live.end(), [&](const auto& entry) {
    return entry.second.study == &study && trials_.HeldByClient(entry.first);
  });
}

void Studies::EndStudyIfDone(StudyId id) {
  const Study& study = turn_.StudyAt(id);
  if (study.state != StudyState::kRunning || AnyMayRun(study)) return;
  const bool all_drawn = study.spec.max_trials > 0 && study.counted() >= study.spec.max_trials;
  const bool too_late = limits_.TooLateForNewTrials(study);
  // What has ended since the pruner was asked may let others go on, and nobody waits for members
  // that are not to be drawn any more.
  trials_.UpdateHeld(study);
  if (AnyMayRun(study)) return;
  // Nobody knows whether a queue gets more trials: one that is empty waits for none.
  const bool empty_queue = study.spec.queued() && !AnyHeldByClient(study);
  if (all_drawn || too_late || plugins_.Of(study).exhausted || empty_queue) {
    trials_.EndUnpromoted(id);
  }
  if (all_drawn) {
    trials_.ConcludeStudy(id, AllTrialsHaveEnded(study.spec));
  } else if (too_late) {
    trials_.ConcludeStudy(id, "what is left of its limits is too little for a new trial");
  } else if (plugins_.Of(study).exhausted) {
    trials_.ConcludeStudy(id, absl::StrCat("every configuration of the search space was tried (",
                                           std::ssize(study.trials), " trials)"));
  }
}

}  // namespace espalier
