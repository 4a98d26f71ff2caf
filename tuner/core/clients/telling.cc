// What clients say of trials, their own and those of the pool: values, and how they ended.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tuner/core/clients/client_trials.h"
#include "tuner/core/state/refusals.h"
#include "tuner/core/state/study_facts.h"
#include "tuner/messages/replica_messages.h"

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

// Why a value of a trial that does not run any more does not count; empty: it does since it was
// told before, and is told again.
std::string IgnoredAfterTheEnd(const Trial& trial, const TellValue& told) {
  const IntermediateValue* before = told.step ? ValueAt(trial, *told.step) : nullptr;
  const bool again = told.final ? trial.value && SameNumber(*trial.value, told.value)
                                : before != nullptr && SameNumber(before->value, told.value);
  if (again) return "";
  return absl::StrCat("trial ", trial.number, Ended(trial.state) ? " has ended as " : " is ",
                      std::string(ToString(trial.state)), ": this value is ignored");
}

// The same for a step of a trial that runs: the first value of a step stands.
std::string IgnoredAtItsStep(const Trial& trial, std::int64_t step, double value, bool final) {
  const IntermediateValue* before = ValueAt(trial, step);
  if (before == nullptr) {
    if (std::ssize(trial.values) < kMaxReportsPerTrial) return "";
    return absl::StrCat(HasReportedTheMost(trial).message(), ": this one is ignored");
  }
  if (SameNumber(before->value, value)) return "";
  return absl::StrCat("step ", step, " was already told as ", before->value,
                      final ? " and stays so; the trial's final value is the one told now"
                            : "; this value is ignored");
}

// The step of a value: as it is told, else the one after the last.
absl::StatusOr<std::int64_t> StepOf(const Trial& trial, std::optional<std::int64_t> told) {
  std::int64_t step = 1;
  if (told) {
    step = *told;
  } else if (!trial.values.empty()) {
    // Clients of Optuna may have given it any step.
    step = std::clamp<std::int64_t>(trial.values.back().step, 0, kMaxStep) + 1;
  }
  ESPALIER_RETURN_IF_ERROR(CheckStep(step));
  return step;
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

// Figures beside a value, whoever tells it.
absl::Status CheckExtra(const StudySpec& spec, const ProgramRank& from,
                        const std::map<std::string, double>& extra) {
  if (extra.empty()) return absl::OkStatus();
  if (spec.by_clients()) {
    return absl::InvalidArgumentError(
        "\"extra\": figures beside the value are of trials that the pool runs: tell the value "
        "alone");
  }
  if (from.of_several()) {
    return absl::InvalidArgumentError(
        "\"extra\": figures beside the value are of programs whose only process is the trial's: "
        "tell the value alone");
  }
  if (extra.size() > kMaxExtraFigures) {
    return absl::InvalidArgumentError(absl::StrCat("\"extra\": at most ", kMaxExtraFigures,
                                                   " further figures, got ", extra.size()));
  }
  for (const auto& [name, value] : extra) {
    if (!name.empty() && name.size() <= kMaxFigureName) continue;
    return absl::InvalidArgumentError(absl::StrCat("\"extra\": the name of a figure has 1 to ",
                                                   kMaxFigureName, " bytes, got ", name.size()));
  }
  return absl::OkStatus();
}

}  // namespace

void ClientTrials::On(const TellValue& event) {
  const auto it = turn_.state().trials.find(event.trial);
  if (it == turn_.state().trials.end()) {
    turn_.reply().status = NoTrial(event.trial);
    return;
  }
  const Trial& trial = it->second;
  absl::Status& status = turn_.reply().status;
  status = RankReports::Check(event.from);
  if (status.ok()) status = CheckExtra(turn_.StudyAt(trial.study).spec, event.from, event.extra);
  if (!status.ok()) return;
  const bool stopped = turn_.StudyAt(trial.study).state != StudyState::kRunning;
  if (Ended(trial.state) || (stopped && trial.state != TrialState::kRunning)) {
    AnswerAfterTheEnd(trial, event);
    return;
  }
  if (trial.state != TrialState::kRunning) {
    turn_.reply().status = absl::FailedPreconditionError(absl::StrCat(
        "trial ", trial.number, " is ", std::string(ToString(trial.state)), ", not RUNNING"));
    return;
  }
  const absl::StatusOr<std::int64_t> step = StepOf(trial, event.step);
  if (!step.ok()) {
    turn_.reply().status = step.status();
    return;
  }
  // What was done until a study was stopped is not lost.
  turn_.reply().content = ValueReply{stopped};
  if (event.from.of_several() && TakeOfRank(trial, event)) return;
  if (turn_.StudyAt(trial.study).spec.by_clients()) {
    if (event.final) {
      turn_.reply().status =
          CheckEnd(turn_.StudyAt(trial.study), {trial.id, TrialState::kComplete, {event.value}});
      if (!turn_.reply().status.ok()) return;
    }
    TakeValue(trial, *step, event.value, event.final);
    if (event.final && turn_.reply().status.ok()) {
      EndTrial(trial, TrialState::kComplete, {event.value});
    }
    return;
  }
  if (event.final && !std::isfinite(event.value)) {
    trials_.EndTrial(trial.id, TrialState::kFail, NoFiniteEnd(event.value), std::nullopt);
    turn_.reply().content =
        ValueReply{stopped, absl::StrCat("trial ", trial.number, " has failed: ", trial.reason)};
    return;
  }
  std::string note = IgnoredAtItsStep(trial, *step, event.value, event.final);
  const IntermediateValue value = {.step = *step, .value = event.value, .at = turn_.now()};
  event.final ? trials_.TakeFinalValue(trial.id, value, event.extra)
              : trials_.TakeValue(trial.id, value, event.extra);
  turn_.reply().content =
      ValueReply{stopped || (Ended(trial.state) && !event.final), std::move(note)};
}

void ClientTrials::AnswerAfterTheEnd(const Trial& trial, const TellValue& event) {
  std::string note = IgnoredAfterTheEnd(trial, event);
  if (!event.from.of_several()) {
    turn_.reply().content = ValueReply{true, std::move(note)};
    return;
  }
  const bool mean = turn_.StudyAt(trial.study).spec.mean_of_ranks;
  if (event.final && !mean && !note.empty() && trial.state == TrialState::kComplete) {
    turn_.reply().status =
        RankReports::Unlike(trial, kFinalStep, event.from, event.value, /*before=*/std::nullopt,
                            trial.value.value_or(std::nan("")));
    return;
  }
  const bool stops = event.final || !event.step || StopsAt(trial, *event.step);
  turn_.reply().content = ValueReply{stops, std::move(note)};
}

bool ClientTrials::StopsAt(const Trial& trial, std::int64_t step) {
  return ranks_.Answer(trial, Question::kStop, step,
                       [this, id = trial.id] { return Verdict(id).action == PruneAction::kPrune; });
}

bool ClientTrials::SavesAt(const Trial& trial, std::int64_t step) {
  if (!trial.ranks->saving.asked() && !trials_.IsOfPlainProgram(trial.id)) return false;
  return ranks_.Answer(trial, Question::kSave, step,
                       [this, id = trial.id] { return trials_.IsSeenOff(id); });
}

bool ClientTrials::TakeOfRank(const Trial& trial, const TellValue& event) {
  const StudySpec& spec = turn_.StudyAt(trial.study).spec;
  // Without a step it is one more value, as of any program; without a mean, the first final value
  // ends the trial.
  if (event.final ? !spec.mean_of_ranks : !event.step) return false;
  const std::int64_t step = event.final ? kFinalStep : *event.step;
  const absl::StatusOr<RankReports::Taken> taken =
      ranks_.Take(trial, event.from, step, event.value);
  if (!taken.ok()) {
    turn_.reply().status = taken.status();
    return true;
  }
  if (spec.by_clients()) HeardOf(trial.id);
  std::string note = taken->note;
  for (const auto& [counts_at, value] : taken->values) {
    if (Ended(trial.state) || !turn_.reply().status.ok()) break;
    if (counts_at == kFinalStep) {
      On(TellValue{trial.id, {}, value, /*final=*/true});
      return true;
    }
    if (note.empty()) note = IgnoredAtItsStep(trial, counts_at, value, /*final=*/false);
    if (!spec.by_clients()) {
      trials_.TakeValue(trial.id, {.step = counts_at, .value = value, .at = turn_.now()});
    } else if (ValueAt(trial, counts_at) == nullptr) {
      SetValue(trial, counts_at, value);
    }
  }
  const bool stops = !event.final && StopsAt(trial, step);
  turn_.reply().content = ValueReply{stops, std::move(note)};
  return true;
}

void ClientTrials::On(const AskVerdict& event) {
  const auto it = turn_.state().trials.find(event.trial);
  absl::Status& status = turn_.reply().status;
  status = it == turn_.state().trials.end() ? NoTrial(event.trial) : CheckStep(event.step);
  if (!status.ok()) return;
  const Trial& trial = it->second;
  if (!Ended(trial.state) && RunningTrial(trial.id) == nullptr) return;
  if (turn_.StudyAt(trial.study).spec.by_clients() && !Ended(trial.state)) HeardOf(trial.id);
  turn_.reply().content = ValueReply{
      event.question == Question::kSave ? SavesAt(trial, event.step) : StopsAt(trial, event.step)};
}

void ClientTrials::On(const ReportValue& event) {
  if (event.from.of_several() && event.step) {
    On(TellValue{.trial = event.trial,
                 .step = event.step,
                 .value = event.value,
                 .final = false,
                 .from = event.from,
                 .extra = event.extra});
    return;
  }
  turn_.reply().status = RankReports::Check(event.from);
  if (!turn_.reply().status.ok()) return;
  const Trial* trial = RunningTrial(event.trial);
  if (trial == nullptr) return;
  turn_.reply().status = CheckExtra(turn_.StudyAt(trial->study).spec, event.from, event.extra);
  if (!turn_.reply().status.ok()) return;
  const absl::StatusOr<std::int64_t> step = StepOf(*trial, event.step);
  if (!step.ok()) {
    turn_.reply().status = step.status();
  } else if (turn_.StudyAt(trial->study).spec.by_clients()) {
    turn_.reply().content = ValueReply{};
    TakeValue(*trial, *step, event.value, /*final=*/false);
  } else {
    turn_.reply().content =
        ValueReply{false, IgnoredAtItsStep(*trial, *step, event.value, /*final=*/false)};
    trials_.TakeValue(trial->id, {.step = *step, .value = event.value, .at = turn_.now()},
                      event.extra);
  }
}

void ClientTrials::TakeValue(const Trial& trial, std::int64_t step, double value, bool final) {
  if (ValueAt(trial, step) == nullptr) {
    SetValue(trial, step, value);
    return;
  }
  HeardOf(trial.id);
  std::get<ValueReply>(turn_.reply().content).note = IgnoredAtItsStep(trial, step, value, final);
}

void ClientTrials::On(const TellEnd& event) {
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
  if (study.spec.by_clients()) {
    EndTrial(trial, event.state, event.values);
  } else if (event.state == TrialState::kComplete) {
    trials_.EndTrial(trial.id, TrialState::kComplete, "told its final value", event.values.front());
  } else {
    status = RunsOnThePool(study);
  }
}

PruneVerdict ClientTrials::Verdict(TrialId id) const {
  const Trial& trial = turn_.state().trials.at(id);
  const Study& study = turn_.state().studies.at(trial.study);
  if (Ended(trial.state)) {
    return {PruneAction::kPrune,
            absl::StrCat("the trial has ended: ", std::string(ToString(trial.state)),
                         trial.reason.empty() ? "" : ", ", trial.reason)};
  }
  if (study.state != StudyState::kRunning) {
    return {PruneAction::kPrune, absl::StrCat("its study is ", std::string(ToString(study.state)),
                                              study.reason.empty() ? "" : ": ", study.reason)};
  }
  // Trials of the pool are judged, and ended, at each value.
  if (!study.spec.by_clients() || study.spec.directions.size() != 1) return {};
  if (study.spec.pruner.name == "none") return {};  // needs no look at all curves
  Curve curve;
  std::vector<Curve> others;
  others.reserve(study.trials.size());
  turn_.state().ForEachTrial(study, [&](const Trial& other) {
    const Curve read{.trial_number = other.number,
                     .points = other.values,
                     .ended = Ended(other.state),
                     .complete = other.state == TrialState::kComplete,
                     .value = other.value.value_or(std::nan("")),
                     .ended_at = other.ended};
    other.id == id ? void(curve = read) : others.push_back(read);
  });
  const PruneVerdict verdict =
      plugins_.Judge(study, curve, others, study.spec.max_step, kUsualPoolShare);
  if (verdict.action == PruneAction::kKeep) return {};
  return {PruneAction::kPrune, absl::StrCat(study.spec.pruner.name, ": ", verdict.reason)};
}

}  // namespace espalier
