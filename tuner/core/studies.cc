// Client events, and how a study begins and ends.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tuner/base/check.h"
#include "tuner/core/core_impl.h"
#include "tuner/core/refusals.h"

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

}  // namespace

void Core::Impl::On(const SetPoolPolicy& event) {
  if (!options_.policy) {
    result_.reply.status = absl::FailedPreconditionError(
        "this pool has no policy of its own: it follows that of its oldest running study");
    return;
  }
  const auto policy = MakePolicy(event.policy.name, event.policy.options);
  if (!policy.ok()) {
    result_.reply.status = policy.status();
    return;
  }
  if (CurrentPolicy() != event.policy) {
    const std::string reason = absl::StrCat("the pool's policy is ", TextOf(event.policy),
                                            " from now on; it was ", TextOf(CurrentPolicy()));
    for (const StudyId id : pool_studies_) Decide(id, -1, DecisionKind::kStudy, 0, 0, reason);
  }
  Emit(PoolPolicySet{event.policy});
  schedule_ = true;
}

void Core::Impl::SetClocksAfterRestart() {
  clocks_set_ = true;
  recovery_ends_ = After(now_, options_.lease_s);
  std::vector<Change> changes;
  for (const auto& [id, study] : state_.studies) {
    if (study.state != StudyState::kRunning) continue;
    const Time last = std::min(LastSeen(state_, study), now_);
    const double active_s =
        study.active_s + std::max(0.0, SecondsBetween(study.running_since, last));
    changes.push_back(StudyClockSet{id, active_s, now_});
  }
  for (Change& change : changes) Emit(std::move(change));
}

StudyPlugins& Core::Impl::PluginsOf(const Study& study) {
  StudyPlugins& plugins = plugins_[study.id];
  if (!plugins.sampler) {
    auto sampler = MakeSampler(study.spec.sampler.name, study.spec.sampler.options);
    auto pruner = MakePruner(study.spec.pruner.name, study.spec.pruner.options);
    ESPALIER_CHECK(sampler.ok() && pruner.ok(), "a study is validated before it is created");
    plugins.sampler = *std::move(sampler);
    plugins.pruner = *std::move(pruner);
  }
  return plugins;
}

bool Core::Impl::MayDraw(const Study& study) {
  const StudyPlugins& plugins = PluginsOf(study);
  return plugins.sampler->draws() && !plugins.exhausted;
}

void Core::Impl::On(const CreateStudy& event) {
  if (const Study* existing = state_.FindStudy(event.spec.name); existing != nullptr) {
    result_.reply.study = existing->id;
    result_.reply.existed = true;
    if (MadeBy(*existing, event.request_key)) return;
    if (!event.exist_ok) {
      result_.reply.status = absl::AlreadyExistsError(
          absl::StrCat("study \"", event.spec.name, "\" exists already: choose another name"));
    } else if (existing->spec.json != event.spec.json) {
      result_.reply.status = absl::FailedPreconditionError(
          absl::StrCat("study \"", event.spec.name,
                       "\" exists with another definition: choose another name or database"));
    }
    return;
  }
  if (absl::Status status = Validate(event.spec); !status.ok()) {
    result_.reply.status = std::move(status);
    return;
  }
  if (!event.request_key.empty()) {
    result_.reply.status = CheckKey(event.request_key);
    if (!result_.reply.status.ok()) return;
  }
  const StudyId id(state_.last_study.value + 1);
  Emit(StudyCreated{id, event.spec, now_});
  if (!event.request_key.empty()) {
    Emit(StudyAttributeSet{id, true, kCreationKey, RequestKeyJson(event.request_key)});
  }
  result_.reply.study = id;
  const std::optional<PluginSpec> own = PoolPolicy();
  if (own && event.spec.names_policy && event.spec.policy != *own) {
    Decide(id, -1, DecisionKind::kStudy, 0, 0,
           absl::StrCat("its policy ", TextOf(event.spec.policy),
                        " is not followed: the pool is divided by ", TextOf(*own)));
  }
  schedule_ = !event.spec.ask_and_tell;
}

void Core::Impl::On(const StopStudy& event) {
  const Study* study = state_.FindStudy(event.name);
  if (study == nullptr) {
    result_.reply.status = absl::NotFoundError(absl::StrCat("no study \"", event.name, "\""));
    return;
  }
  result_.reply.study = study->id;
  if (study->state != StudyState::kRunning) return;  // stopped or ended: nothing to do
  const StudyId id = study->id;
  Decide(id, -1, DecisionKind::kStudy, 0, 0, "stopped by the user");
  Emit(StudyStateChanged{id, StudyState::kStopped, "stopped by the user", now_});
  for (const auto& [trial, live] : std::map(live_)) {
    if (live.trial->study == id) PauseTrial(trial, "its study was stopped");
  }
  schedule_ = true;
}

void Core::Impl::On(const ResumeStudy& event) {
  const Study* found = state_.FindStudy(event.name);
  if (found == nullptr) {
    result_.reply.status = absl::NotFoundError(absl::StrCat("no study \"", event.name, "\""));
    return;
  }
  const StudyId id = found->id;
  result_.reply.study = id;
  if (event.max_trials > 0 || event.time_limit_s > 0) {
    Emit(
        StudyLimitsChanged{id, event.max_trials > 0 ? event.max_trials : found->spec.max_trials,
                           event.time_limit_s > 0 ? event.time_limit_s : found->spec.time_limit_s});
  }
  if (found->state == StudyState::kRunning) return;
  Decide(id, -1, DecisionKind::kStudy, 0, 0, "resumed by the user");
  Emit(StudyStateChanged{id, StudyState::kRunning, "", now_});
  promise_stale_.insert(id);
  schedule_ = true;
}

void Core::Impl::On(const PinTrial& event) {
  const Study* study = state_.FindStudy(event.study);
  if (study == nullptr) {
    result_.reply.status = absl::NotFoundError(absl::StrCat("no study \"", event.study, "\""));
    return;
  }
  if (event.trial_number < 0 || event.trial_number >= std::ssize(study->trials)) {
    result_.reply.status = absl::NotFoundError(
        absl::StrCat("study \"", event.study, "\" has no trial ", event.trial_number,
                     "; its trials are 0 to ", std::ssize(study->trials) - 1));
    return;
  }
  const Trial& trial = TrialAt(study->trials[static_cast<std::size_t>(event.trial_number)]);
  result_.reply.trial = trial.id;
  if (Ended(trial.state)) {
    result_.reply.status = absl::FailedPreconditionError(absl::StrCat(
        "trial ", event.trial_number, " has ended (", std::string(ToString(trial.state)),
        "): only a live trial can be held at a number of slots"));
    return;
  }
  if (event.slots < 0 || event.slots > std::max(1, SlotsTotal())) {
    result_.reply.status = absl::InvalidArgumentError(absl::StrCat(
        "slots must be 0 (back to the allocator) to ", SlotsTotal(), ", got ", event.slots));
    return;
  }
  if (trial.pinned_slots != event.slots) Emit(TrialPinned{trial.id, event.slots});
  schedule_ = true;
}

void Core::Impl::On(const TellValue& event) {
  const auto it = state_.trials.find(event.trial);
  if (it == state_.trials.end()) {
    result_.reply.status = NoTrial(event.trial);
    return;
  }
  const Trial& trial = it->second;
  if (Ended(trial.state) || StudyAt(trial.study).state != StudyState::kRunning) {
    result_.reply.should_stop = true;
    return;
  }
  if (trial.state != TrialState::kRunning) {
    result_.reply.status = absl::FailedPreconditionError(absl::StrCat(
        "trial ", trial.number, " is ", std::string(ToString(trial.state)), ", not RUNNING"));
    return;
  }
  const std::int64_t next = trial.values.empty() ? 1 : trial.values.back().step + 1;
  if (event.step && *event.step < 0) {
    result_.reply.status =
        absl::InvalidArgumentError(absl::StrCat("step must be 0 or more, got ", *event.step));
    return;
  }
  if (StudyAt(trial.study).spec.ask_and_tell) {
    SetValue(trial, event.step.value_or(next), event.value);
    if (event.final && result_.reply.status.ok()) {
      EndByClient(trial, TrialState::kComplete, {event.value});
    }
    return;
  }
  TakeValue(trial.id, {event.step.value_or(next), event.value, 0, now_, 0});
  if (event.final && !Ended(trial.state)) {
    EndTrial(trial.id, TrialState::kComplete, "told its final value", event.value);
  }
  result_.reply.should_stop = Ended(trial.state) && !event.final;
}

void Core::Impl::EndStudy(StudyId id, StudyState state, const std::string& reason) {
  if (StudyAt(id).state != StudyState::kRunning) return;
  Decide(id, -1, DecisionKind::kStudy, 0, 0, reason);
  Emit(StudyStateChanged{id, state, reason, now_});
  for (const auto& [trial, live] : std::map(live_)) {
    const Trial& t = *live.trial;
    if (t.study != id) continue;
    std::optional<double> last;
    if (!t.values.empty()) last = t.values.back().value;
    EndTrial(trial, TrialState::kPruned, absl::StrCat("the study ended: ", reason), last);
  }
  plugins_.erase(id);
  cost_check_.erase(id);
  promise_at_.erase(id);
  curves_.Forget(id);
  schedule_ = true;
}

void Core::Impl::EndStudyIfDone(StudyId id) {
  const Study& study = StudyAt(id);
  if (study.state != StudyState::kRunning) return;
  for (const auto& [trial, live] : live_) {
    if (live.study == &study && !held_.contains(trial)) return;
  }
  const bool all_drawn =
      study.spec.max_trials > 0 && std::ssize(study.trials) >= study.spec.max_trials;
  const bool too_late = TooLateForNewTrials(study);
  if (all_drawn || too_late || PluginsOf(study).exhausted) EndHeld(id);
  if (all_drawn) {
    EndStudy(id, StudyState::kComplete,
             absl::StrCat("all ", study.spec.max_trials, " trials have ended"));
  } else if (too_late) {
    EndStudy(id, StudyState::kComplete, "what is left of its limits is too little for a new trial");
  } else if (PluginsOf(study).exhausted) {
    EndStudy(id, StudyState::kComplete,
             absl::StrCat("every configuration of the search space was tried (",
                          std::ssize(study.trials), " trials)"));
  }
}

int Core::Impl::ConsecutiveFailures(const Study& study) const {
  // In order of ending, newest first; those before the last start of the study do not count.
  std::vector<std::pair<Time, TrialState>> ended;
  for (const TrialId id : study.trials) {
    const Trial& trial = state_.trials.at(id);
    const bool cancelled = trial.state == TrialState::kFail && trial.reason.starts_with(kCancelled);
    if (Ended(trial.state) && !cancelled && trial.ended >= study.running_since) {
      ended.emplace_back(trial.ended, trial.state);
    }
  }
  std::stable_sort(ended.begin(), ended.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  int failures = 0;
  for (auto it = ended.rbegin(); it != ended.rend() && it->second == TrialState::kFail; ++it) {
    ++failures;
  }
  return failures;
}

}  // namespace espalier
