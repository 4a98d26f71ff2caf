// What clients say of the trials they run by themselves: values, how they ended, and what that
// means for their study.

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tuner/core/core_impl.h"
#include "tuner/core/refusals.h"

namespace espalier {

namespace {

std::vector<double> FinalValues(const Trial& trial) {
  std::vector<double> values;
  if (trial.value) values.push_back(*trial.value);
  values.insert(values.end(), trial.other_values.begin(), trial.other_values.end());
  return values;
}

bool SameNumber(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// Whether an ended trial ended as it is told now. Values that are not told are as they were.
bool EndedSo(const Trial& trial, const TellEnd& told) {
  if (trial.state != told.state) return false;
  const std::vector<double> values = FinalValues(trial);
  return told.values.empty() || std::equal(values.begin(), values.end(), told.values.begin(),
                                           told.values.end(), SameNumber);
}

absl::Status CheckEnd(const Study& study, const TellEnd& told) {
  const std::size_t directions = study.spec.directions.size();
  const std::string state(ToString(told.state));
  if (!Ended(told.state)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a trial ends as COMPLETE, PRUNED or FAIL, got ", state));
  }
  const std::size_t needed = told.state == TrialState::kComplete ? directions : 0;
  if (told.values.size() < needed) {
    return absl::InvalidArgumentError(absl::StrCat("a COMPLETE trial of study \"", study.spec.name,
                                                   "\" needs ", needed, " value(s), got ",
                                                   told.values.size()));
  }
  const std::size_t most = told.state == TrialState::kFail ? 0 : directions;
  if (told.values.size() > most) {
    return absl::InvalidArgumentError(absl::StrCat("a trial of study \"", study.spec.name,
                                                   "\" that ends as ", state, " has at most ", most,
                                                   " value(s), got ", told.values.size()));
  }
  if (std::any_of(told.values.begin(), told.values.end(), [](double v) { return std::isnan(v); })) {
    return absl::InvalidArgumentError(absl::StrCat("the final value of a trial that ends as ",
                                                   state, " is a number, got NaN: tell FAIL"));
  }
  return absl::OkStatus();
}

}  // namespace

// Found, and RUNNING; else null, and the reply says why not.
const Trial* Core::Impl::RunningTrial(TrialId id) {
  const Trial* trial = OpenTrial(id);
  if (trial == nullptr || trial->state == TrialState::kRunning) return trial;
  turn_.reply().status = absl::FailedPreconditionError(
      absl::StrCat("trial ", trial->number, " (id ", id.value, ") is ",
                   std::string(ToString(trial->state)), ", not RUNNING"));
  return nullptr;
}

void Core::Impl::On(const ReportValue& event) {
  const Trial* trial = RunningTrial(event.trial);
  if (trial == nullptr) return;
  const std::int64_t next = trial->values.empty() ? 1 : trial->values.back().step + 1;
  const std::int64_t step = event.step.value_or(next);
  if (step < 0) {
    turn_.reply().status =
        absl::InvalidArgumentError(absl::StrCat("step must be 0 or more, got ", step));
  } else if (turn_.StudyAt(trial->study).spec.ask_and_tell) {
    SetValue(*trial, step, event.value);
  } else {
    TakeValue(trial->id, {step, event.value, 0, turn_.now(), 0});
  }
}

// Of a trial that its client runs.
void Core::Impl::SetValue(const Trial& trial, std::int64_t step, double value) {
  HeardOf(trial.id);
  if (std::ssize(trial.values) >= kMaxReportsPerTrial) {
    turn_.reply().status = absl::ResourceExhaustedError(
        absl::StrCat("trial ", trial.number, " has reported ", kMaxReportsPerTrial,
                     " values, which is the most that is kept"));
    return;
  }
  turn_.Emit(ValueSet{trial.id, {step, value, 0, turn_.now(), 0}});
  EndIfTargetReached(trial, value);
}

void Core::Impl::EndIfTargetReached(const Trial& trial, double value) {
  const Study& study = turn_.StudyAt(trial.study);
  if (study.state != StudyState::kRunning || !study.spec.target || std::isnan(value)) return;
  if (Better(study.spec.direction, *study.spec.target, value)) return;
  EndStudy(study.id, StudyState::kComplete,
           absl::StrCat("trial ", trial.number, " reached the target ", *study.spec.target,
                        " with ", value));
}

void Core::Impl::On(const TellEnd& event) {
  const auto it = turn_.state().trials.find(event.trial);
  if (it == turn_.state().trials.end()) {
    turn_.reply().status = NoTrial(event.trial);
    return;
  }
  const Trial& trial = it->second;
  const Study& study = turn_.StudyAt(trial.study);
  absl::Status& status = turn_.reply().status;
  status = CheckEnd(study, event);
  if (!status.ok()) return;
  if (Ended(trial.state)) {
    if (EndedSo(trial, event)) return;
    status = absl::FailedPreconditionError(
        absl::StrCat("trial ", trial.number, " (id ", trial.id.value, ") has ended as ",
                     std::string(ToString(trial.state)), " with [",
                     absl::StrJoin(FinalValues(trial), ", "), "], and not as it is told now"));
    return;
  }
  if (RunningTrial(event.trial) == nullptr) return;
  if (study.spec.ask_and_tell) {
    EndByClient(trial, event.state, event.values);
  } else if (event.state == TrialState::kComplete) {
    EndTrial(trial.id, TrialState::kComplete, "told its final value", event.values.front());
  } else {
    status = RunsOnThePool(study);
  }
}

// A pruned trial without a value ends with the last one that it reported.
void Core::Impl::EndByClient(const Trial& trial, TrialState state, std::vector<double> values) {
  if (state == TrialState::kPruned && values.empty() && !trial.values.empty() &&
      !std::isnan(trial.values.back().value)) {
    values.push_back(trial.values.back().value);
  }
  turn_.Emit(TrialTold{trial.id, state, std::move(values), {}, turn_.now()});
  HeardOf(trial.id);
  AfterEndByClient(trial);
}

void Core::Impl::AfterEndByClient(const Trial& trial) {
  if (trial.state == TrialState::kComplete && trial.value) EndIfTargetReached(trial, *trial.value);
  EndIfAllTold(trial.study);
}

// An ask-and-tell study ends when it may have no more trials and all have ended.
void Core::Impl::EndIfAllTold(StudyId id) {
  const Study& study = turn_.StudyAt(id);
  if (study.state != StudyState::kRunning) return;
  const bool full = study.spec.max_trials > 0 && std::ssize(study.trials) >= study.spec.max_trials;
  const auto plugins = plugins_.find(id);
  const bool exhausted = plugins != plugins_.end() && plugins->second.exhausted;
  if (!full && !exhausted) return;
  const bool all_ended = std::all_of(study.trials.begin(), study.trials.end(), [this](TrialId t) {
    return Ended(turn_.state().trials.at(t).state);
  });
  if (!all_ended) return;
  EndStudy(id, StudyState::kComplete,
           full ? absl::StrCat("all ", study.spec.max_trials, " trials have ended")
                : "every configuration of the search space was tried");
}

void Core::Impl::On(const SetTrialAttributes& event) {
  if (OpenTrial(event.trial) == nullptr) return;
  for (const auto& [key, value] : event.attributes.user) {
    turn_.Emit(TrialAttributeSet{event.trial, false, key, value});
  }
  for (const auto& [key, value] : event.attributes.system) {
    turn_.Emit(TrialAttributeSet{event.trial, true, key, value});
  }
  HeardOf(event.trial);
}

PruneVerdict Core::Impl::Verdict(TrialId id) const {
  const Trial& trial = turn_.state().trials.at(id);
  const Study& study = turn_.state().studies.at(trial.study);
  if (Ended(trial.state)) {
    return {true, absl::StrCat("the trial has ended: ", std::string(ToString(trial.state)),
                               trial.reason.empty() ? "" : ", ", trial.reason)};
  }
  if (study.state != StudyState::kRunning) {
    return {true, absl::StrCat("its study is ", std::string(ToString(study.state)),
                               study.reason.empty() ? "" : ": ", study.reason)};
  }
  // Trials of the pool are judged, and ended, at each value.
  if (!study.spec.ask_and_tell || study.spec.directions.size() != 1) return {};
  if (study.spec.pruner.name == "none") return {};  // needs no look at all curves
  const absl::StatusOr<std::unique_ptr<Pruner>> pruner =
      MakePruner(study.spec.pruner.name, study.spec.pruner.options);
  if (!pruner.ok()) return {};
  Curve curve;
  std::vector<Curve> others;
  others.reserve(study.trials.size());
  turn_.state().ForEachTrial(study, [&](const Trial& other) {
    const Curve read{other.number, other.values, Ended(other.state),
                     other.state == TrialState::kComplete};
    other.id == id ? void(curve = read) : others.push_back(read);
  });
  PruneVerdict verdict = (*pruner)->Judge(
      {study.spec.direction, curve, others, study.spec.max_step, study.spec.best_k});
  if (!verdict.prune && !verdict.pause) return {};
  return {true, absl::StrCat(study.spec.pruner.name, ": ", verdict.reason)};
}

}  // namespace espalier
