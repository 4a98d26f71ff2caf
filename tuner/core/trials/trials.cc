#include "tuner/core/trials/trials.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/protocol.h"
#include "tuner/core/groups/size_restarts.h"
#include "tuner/core/population/truncation.h"
#include "tuner/core/state/refusals.h"
#include "tuner/core/state/study_facts.h"
#include "tuner/core/trials/population_turns.h"

namespace espalier {

namespace {

DecisionKind KindOfEnd(TrialState state) {
  switch (state) {
    case TrialState::kComplete:
      return DecisionKind::kFinish;
    case TrialState::kFail:
      return DecisionKind::kFail;
    case TrialState::kPruned:
    case TrialState::kWaiting:
    case TrialState::kRunning:
    case TrialState::kPaused:
      return DecisionKind::kPrune;
  }
  return DecisionKind::kPrune;
}

// Where all trials of the study failed: that, and why the last one did. Those that were cancelled
// did not fail by themselves.
std::optional<std::string> AllFailed(const Study& study, const TunerState& state) {
  const Trial* last = nullptr;
  for (const TrialId id : study.trials) {
    const Trial& trial = state.trials.at(id);
    if (trial.state != TrialState::kFail) return std::nullopt;
    if (!trial.cancelled && (last == nullptr || trial.ended >= last->ended)) last = &trial;
  }
  if (last == nullptr) return std::nullopt;
  const bool only = study.trials.size() == 1;
  std::string text =
      only ? "its only trial failed" : absl::StrCat("all ", study.trials.size(), " trials failed");
  if (!last->reason.empty()) {
    absl::StrAppend(&text, only ? ": " : "; the last: ", last->reason);
  }
  return text;
}

bool EndedWithNumbers(const Trial& trial) {
  const auto is_number = [](double value) { return std::isfinite(value); };
  return trial.state == TrialState::kComplete && trial.value && is_number(*trial.value) &&
         std::ranges::all_of(trial.other_values, is_number);
}

// What its study needs of a trial and it has not told, so that it has failed; empty: nothing. What
// one is for that a client has enqueued, and that tells no value at all, its client knows.
std::string WhatIsMissing(const StudySpec& spec, const Trial& trial) {
  if (spec.queued() && trial.values.empty()) return "";
  std::string how = "programs report it beside the value, as a figure of that name";
  if (!spec.from_output.value.empty()) how = "no line with a value had a number in its group";
  if (!spec.from_files.path.empty()) how = "no line with a value had a number under that key";
  if (const std::string metric = UntoldMetric(spec, trial); !metric.empty()) {
    return absl::StrCat("has not told of metric \"", metric, "\": ", how);
  }
  if (const std::string figure = UntoldFigure(spec, trial); !figure.empty()) {
    return absl::StrCat("has not told of \"", figure, "\", which \"constraints\" bounds: ", how);
  }
  return "";
}

// Of a clone that has told nothing and was right not to; empty: it is none. Its parent has told of
// its steps, so that the program does.
std::string WhyNothingWasLeft(const TunerState& state, const Study& study, const Trial& trial) {
  if (!trial.lineage->cloned() || trial.lineage->awaited() || !trial.values.empty()) return "";
  const Trial& parent =
      state.trials.at(study.trials.at(static_cast<std::size_t>(trial.lineage->parent)));
  if (parent.values.empty()) return "";
  return absl::StrCat("nothing was left to train: it began with the checkpoint of step ",
                      trial.lineage->step, " of trial ", parent.number,
                      ", and ended without reporting anything");
}

// The curves as a trial is compared with them: those of trials that break a constraint are empty.
std::vector<Curve> AsRivals(std::span<const Curve> curves) {
  std::vector<Curve> rivals(curves.begin(), curves.end());
  for (Curve& curve : rivals) {
    if (curve.breaks) curve.points = {};
    if (curve.breaks) curve.others = {};
  }
  return rivals;
}

// Where trials of the study ran to their end and none has a value that can be compared: that.
std::optional<std::string> NoneHasANumber(const Study& study, const TunerState& state) {
  if (study.spec.kind != StudyKind::kTuned || !study.spec.has_metric) return std::nullopt;
  if (BestTrial(state, study)) return std::nullopt;
  if (!study.spec.other_metrics.empty() && std::ranges::any_of(study.trials, [&state](TrialId id) {
        return EndedWithNumbers(state.trials.at(id));
      })) {
    return std::nullopt;
  }
  const Trial* last = nullptr;
  bool on_its_way = false;
  for (const TrialId id : study.trials) {
    const Trial& trial = state.trials.at(id);
    const auto is_number = [](const IntermediateValue& told) { return std::isfinite(told.value); };
    on_its_way = on_its_way || std::ranges::any_of(trial.values, is_number);
    if (trial.state != TrialState::kComplete || !trial.value) continue;
    if (std::isfinite(*trial.value)) return std::nullopt;  // and it breaks a constraint
    last = &trial;
  }
  if (last == nullptr) return std::nullopt;
  return absl::StrCat("none of its ", study.trials.size(), " trials has ",
                      on_its_way ? "ended with" : "told", " a number as \"", study.spec.metric,
                      "\"; the last, trial ", last->number, ", ended with ", *last->value);
}

}  // namespace

void Trials::Observe(const Change& change) {
  for (std::set<TrialId>* held : {&held_by_pruner_, &held_by_client_, &held_for_others_}) {
    if (const auto trial = TrialEndedBy(change)) held->erase(*trial);
    if (std::holds_alternative<StudyDeleted>(change)) {
      std::erase_if(*held, [this](TrialId id) { return !turn_.state().trials.contains(id); });
    }
  }
}

void Trials::EndTrial(TrialId id, TrialState state, std::string reason, std::optional<double> value,
                      const std::string& last_output, bool cancelled) {
  const Trial& trial = turn_.TrialAt(id);
  if (Ended(trial.state)) return;
  if (state == TrialState::kComplete) {
    const StudySpec& spec = turn_.StudyAt(trial.study).spec;
    const std::string missing = WhatIsMissing(spec, trial);
    if (!missing.empty()) {
      EndTrial(id, TrialState::kFail, absl::StrCat(reason, " and ", missing), std::nullopt,
               last_output, cancelled);
      return;
    }
    const std::string broken = BrokenConstraints(spec, trial, value);
    if (!broken.empty()) absl::StrAppend(&reason, " and breaks ", broken);
  }
  // A trial that never ran cannot be COMPLETE: only RUNNING leads there.
  ESPALIER_CHECK(MayFollow(trial.state, state, StateSource::kPool),
                 std::string(ToString(trial.state)) + " to " + std::string(ToString(state)));
  turn_.Decide(trial, KindOfEnd(state), pool_.SlotsHeldBy(id), 0, reason);
  RecordFigures(id, FiguresOf(id));
  const auto group = pool_.groups.find(id);
  const bool elastic = group != pool_.groups.end() && group->second.elastic;
  // One whose output alone is read, as at the target, is not told that it may end.
  const bool hears_nothing = !elastic && turn_.StudyAt(trial.study).spec.reads_values();
  std::string output = last_output;
  if (output.size() > kMaxLastOutput_bytes) output.erase(0, output.size() - kMaxLastOutput_bytes);
  turn_.Emit(TrialStateChanged{.id = id,
                               .state = state,
                               .at = turn_.now(),
                               .reason = reason,
                               .value = value,
                               .last_output = std::move(output),
                               .cancelled = cancelled});
  const TrialTimeouts timeouts = groups_.TimeoutsOf(trial);
  for (const ReplicaId replica_id : pool_.replicas.Of(id)) {
    Replica& replica = pool_.replicas.at(replica_id);
    // One that has not trained yet waits for a group that will not come.
    const bool waits = elastic && replica.generation == 0;
    if (state == TrialState::kComplete && !waits && !hears_nothing) {
      // The program is on its own way out; it is only helped if it does not get there.
      pool_.replicas.SetDeadline(replica, After(turn_.now(), timeouts.exit_s));
      replica.grace_s = turn_.StudyAt(trial.study).spec.stop_grace_s;
    } else {
      groups_.StopReplica(replica, turn_.StudyAt(trial.study).spec.stop_grace_s);
    }
  }
  const StudyId study_id = trial.study;
  const Study& study = turn_.StudyAt(study_id);
  if (state == TrialState::kFail && study.state == StudyState::kRunning) {
    const int failures = ConsecutiveFailures(study);
    if (failures >= study.spec.max_consecutive_failures) {
      EndStudy(study_id, StudyState::kFailed,
               absl::StrCat(failures, " trials failed one after another (limit ",
                            study.spec.max_consecutive_failures, "); the last: ", reason));
    }
  }
  turn_.Wake();
}

void Trials::EndWell(TrialId id, std::optional<double> value, const std::string& last_output) {
  const Trial& trial = turn_.TrialAt(id);
  const Study& study = turn_.StudyAt(trial.study);
  const StudySpec& spec = study.spec;
  for (const auto& [step, mean] : ranks_.TakeRest(trial)) {
    if (step != kFinalStep) {
      RecordValue(id, {.step = step, .value = mean, .at = turn_.now()}, {});
    } else if (!value && std::isfinite(mean)) {
      value = mean;
    }
    if (Ended(trial.state)) return;  // with its study
  }
  if (!value) value = trial.value;
  if (!value && !trial.values.empty()) value = trial.values.back().value;
  const std::string nothing_left = WhyNothingWasLeft(turn_.state(), study, trial);
  if (!nothing_left.empty() && (!value || !WhatIsMissing(spec, trial).empty())) {
    EndTrial(id, TrialState::kPruned, nothing_left, std::nullopt);
    return;
  }
  // The client that enqueues trials decides what they are for.
  if (value || spec.queued() || !spec.has_metric) {
    EndTrial(id, TrialState::kComplete, "ran to its end", value);
  } else {
    EndTrial(id, TrialState::kFail,
             absl::StrCat("ended without reporting \"", spec.metric,
                          "\": its program has to report it, by `tuner tell --value V`, "
                          "trial.report in Python or trial.Report in C++; or the "
                          "study finds it in what the program prints or writes, by \"metric\": "
                          "{\"from_output\": ...}, \"from_file\" or \"from_tensorboard\""),
             std::nullopt, last_output);
  }
}

void Trials::PauseTrial(TrialId id, const std::string& reason,
                        const std::optional<AllocationFigures>& figures) {
  const Trial& trial = turn_.TrialAt(id);
  const auto it = pool_.groups.find(id);
  if (trial.state != TrialState::kRunning) {
    if (it != pool_.groups.end()) pool_.groups.erase(it);  // was only about to start
    return;
  }
  if (it == pool_.groups.end()) return;  // still recovering: GroupLost pauses it
  Group& group = it->second;
  if (group.pausing) return;
  group.pausing = true;
  group.pause_reason = reason;
  group.target.clear();
  pool_.reconcile.insert(id);
  const double grace_s = turn_.StudyAt(trial.study).spec.stop_grace_s;
  turn_.Decide(trial, DecisionKind::kPause, pool_.SlotsHeldBy(id), 0, reason, figures);
  const std::vector<ReplicaId> members = std::exchange(group.members, {});
  if (group.elastic && !members.empty()) {
    // A regroup to nobody: rank 0 saves a checkpoint, then all leave. There is no step boundary to
    // wait for while a group forms or waits in vain.
    const bool abandon = group.forming || !group.stuck.empty();
    const TrialTimeouts timeouts = groups_.TimeoutsOf(trial);
    turn_.Emit(GenerationAdvanced{id, trial.generation + 1});
    for (const ReplicaId member : members) {
      const auto replica = pool_.replicas.find(member);
      if (replica == pool_.replicas.end()) continue;
      replica->second.leaving = true;
      pool_.replicas.SetDeadline(replica->second, After(turn_.now(), timeouts.pause_s));
      replica->second.grace_s = grace_s;
      turn_.Send(RegroupCommand{replica->second.node, member, {trial.generation, {}, abandon}});
    }
    group.forming = false;
  }
  for (const ReplicaId replica_id : pool_.replicas.Of(id)) {
    if (Replica& replica = pool_.replicas.at(replica_id); !replica.leaving)
      groups_.SeeOff(replica, grace_s);
  }
}

bool Trials::IsOfPlainProgram(TrialId id) const {
  const auto group = pool_.groups.find(id);
  return group != pool_.groups.end() && !group->second.elastic;
}

bool Trials::SavesWhenAsked(TrialId id) const {
  const Trial& trial = turn_.TrialAt(id);
  if (trial.state != TrialState::kRunning || !IsOfPlainProgram(id)) return false;
  if (trial.ranks->saving.asked()) return true;
  if (!turn_.StudyAt(trial.study).spec.resize_by_restart) return false;
  // Before that it may yet turn out to be elastic, and may not listen to SIGTERM yet.
  return !trial.values.empty() && !trial.spans.empty() &&
         trial.values.back().at >= trial.spans.back().from;
}

bool Trials::IsSeenOff(TrialId id) const {
  const std::set<ReplicaId>& all = pool_.replicas.Of(id);
  return IsOfPlainProgram(id) && std::any_of(all.begin(), all.end(), [this](ReplicaId replica_id) {
           const Replica& replica = pool_.replicas.at(replica_id);
           return replica.leaving || replica.stopping;
         });
}

void Trials::StartAgain(TrialId id, const std::string& what) {
  const Trial& trial = turn_.TrialAt(id);
  const int most = turn_.StudyAt(trial.study).spec.max_restarts;
  if (trial.restarts >= most) {
    EndTrial(id, TrialState::kFail, absl::StrCat(what, " and again after ", most, " restarts"),
             std::nullopt);
    return;
  }
  turn_.Emit(TrialRestarted{id, trial.restarts + 1});
  PauseTrial(id, absl::StrCat(what,
                              trial.checkpoint.empty() ? "; starts from the beginning"
                                                       : "; goes on from its checkpoint",
                              " (restart ", trial.restarts, " of ", most, ")"));
}

void Trials::BecomePaused(TrialId id, const std::string& reason) {
  turn_.Emit(TrialStateChanged{
      .id = id, .state = TrialState::kPaused, .at = turn_.now(), .reason = reason});
  pool_.groups.erase(id);
  turn_.Wake();
}

void Trials::TakeValue(TrialId id, IntermediateValue value, std::map<std::string, double> extra) {
  if (RecordValue(id, value, std::move(extra))) JudgeTrial(id);
}

void Trials::TakeFinalValue(TrialId id, const IntermediateValue& value,
                            std::map<std::string, double> extra) {
  RecordValue(id, value, std::move(extra));
  if (Ended(turn_.TrialAt(id).state)) return;  // with its study
  EndTrial(id, TrialState::kComplete, "told its final value", value.value);
}

bool Trials::RecordValue(TrialId id, IntermediateValue value, std::map<std::string, double> extra) {
  const Trial& trial = turn_.TrialAt(id);
  NoteValueOf(turn_, pool_, id, value.step);
  // The same step may come twice: from the successor of a lost rank 0, or after a restart from a
  // checkpoint. The first one stands.
  if (ValueAt(trial, value.step) != nullptr) return false;
  if (std::ssize(trial.values) >= kMaxReportsPerTrial) return false;
  const std::optional<TrainingFigures> figures = FiguresOf(id);
  if (figures) {
    value.batch_size = pool_.groups.at(id).progress->global_batch_size;
    value.goodput = Groups::GoodputIn(*figures);
  }
  value.promise = KeptFigure(promises_.Find(id).value_or(0));
  turn_.Emit(ValueReported{id, value, std::move(extra)});
  RecordFigures(id, figures);
  turn_.LookAgain();
  const Study& study = turn_.StudyAt(trial.study);
  if (study.state != StudyState::kRunning) return false;
  if (ReachesTarget(study.spec, trial, value.value)) {
    const StudyId study_id = study.id;
    const std::string reason =
        absl::StrCat("trial ", trial.number, " reached the target ", *study.spec.target, " with ",
                     value.value, " at step ", value.step);
    EndTrial(id, TrialState::kComplete, reason, value.value);
    EndStudy(study_id, StudyState::kComplete, reason);
    return false;
  }
  return true;
}

// None: no group of the trial has told its progress.
std::optional<TrainingFigures> Trials::FiguresOf(TrialId id) const {
  const auto group = pool_.groups.find(id);
  if (group == pool_.groups.end() || !group->second.progress) return std::nullopt;
  return groups_.FiguresOf(id, group->second);
}

void Trials::RecordFigures(TrialId id, const std::optional<TrainingFigures>& figures) {
  if (figures && *figures != turn_.TrialAt(id).figures) turn_.Emit(FiguresRecorded{id, *figures});
}

PruneVerdict Trials::JudgeNewest(const Trial& trial) {
  const Study& study = turn_.StudyAt(trial.study);
  const std::span<Curve> curves = curves_.Of(turn_.state(), study);
  Curve& own = curves[static_cast<std::size_t>(trial.number)];
  const Curve whole = own;
  // Until then it stands behind the others, which are all but the last then.
  std::swap(own, curves.back());
  std::span<const Curve> others = curves.first(curves.size() - 1);
  std::vector<Curve> rivals;
  if (!study.spec.constraints.empty()) {
    rivals = AsRivals(others);
    others = rivals;
  }
  const double pool_share =
      std::min(1.0, static_cast<double>(study.spec.min_slots) / std::max(1, pool_.SlotsTotal()));
  PruneVerdict verdict;
  // At equal progress a new value may bring no new point, or several: each is judged once.
  for (std::size_t n = curves_.PointsBeforeNewest(trial) + 1; n <= whole.points.size(); ++n) {
    Curve curve = whole;
    curve.points = whole.points.first(n);
    curve.breaks = false;  // it may still come to keep what it breaks
    verdict = plugins_.Judge(study, curve, others, pool_.LastStepOf(study), pool_share);
    if (verdict.action != PruneAction::kKeep) break;
  }
  std::swap(own, curves.back());
  return verdict;
}

void Trials::JudgeTrial(TrialId id) {
  const Trial& trial = turn_.TrialAt(id);
  const StudySpec& spec = turn_.StudyAt(trial.study).spec;
  if (spec.pruner.name == "none") return;  // all curves need not be gathered for it
  const PruneVerdict verdict = JudgeNewest(trial);
  if (verdict.action == PruneAction::kKeep) return;
  const bool pause = verdict.action == PruneAction::kPause;
  if (pause && MayPause(id)) {
    PauseTrial(id, absl::StrCat(spec.pruner.name, ": ", verdict.reason));
  } else {
    const bool adaptive = spec.batch_mode == BatchMode::kAdaptive;
    EndTrial(id, TrialState::kPruned,
             absl::StrCat(spec.pruner.name, ": ", verdict.reason,
                          pause ? "; its program cannot be paused" : "",
                          adaptive ? " (steps at equal progress)" : ""),
             trial.values.back().value);
  }
}

// Only a program that takes checkpoints can go on later.
bool Trials::MayPause(TrialId id) const {
  const auto group = pool_.groups.find(id);
  return group != pool_.groups.end() && group->second.elastic;
}

void Trials::EndStudy(StudyId id, StudyState state, const std::string& reason) {
  if (turn_.StudyAt(id).state != StudyState::kRunning) return;
  turn_.Decide(id, -1, DecisionKind::kStudy, 0, 0, reason);
  turn_.Emit(StudyStateChanged{id, state, reason, turn_.now()});
  for (const auto& [trial, live] : std::map(pool_.live)) {
    const Trial& t = *live.trial;
    if (t.study != id) continue;
    std::optional<double> last;
    if (!t.values.empty()) last = t.values.back().value;
    EndTrial(trial, TrialState::kPruned, absl::StrCat("the study ended: ", reason), last);
  }
  turn_.Wake();
}

void Trials::ConcludeStudy(StudyId id, const std::string& reason) {
  std::optional<std::string> failed = AllFailed(turn_.StudyAt(id), turn_.state());
  if (!failed) failed = NoneHasANumber(turn_.StudyAt(id), turn_.state());
  EndStudy(id, failed ? StudyState::kFailed : StudyState::kComplete, failed.value_or(reason));
}

int Trials::ConsecutiveFailures(const Study& study) const {
  // In order of ending, newest first; those before the last start of the study do not count.
  std::vector<std::pair<Time, TrialState>> ended;
  for (const TrialId id : study.trials) {
    const Trial& trial = turn_.state().trials.at(id);
    if (Ended(trial.state) && !trial.cancelled && trial.ended >= study.running_since) {
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

// Those that run, run on.
void Trials::AskClients(const Study& study) {
  for (const auto& [id, live] : pool_.live) {
    const Trial& trial = *live.trial;
    if (trial.study != study.id) continue;
    if (!trial.held) {
      held_by_client_.erase(id);
    } else if (trial.state != TrialState::kRunning && !pool_.groups.contains(id)) {
      held_by_client_.insert(id);
    }
  }
}

void Trials::UpdateHeld(const Study& study) {
  AskPruner(study);
  if (study.spec.queued()) AskClients(study);
  if (study.spec.population.on()) AskPopulation(study);
}

// Of those that do not run, the ones that are furthest behind are never held.
void Trials::AskPopulation(const Study& study) {
  const std::span<const Curve> curves = curves_.Of(turn_.state(), study);
  const std::map<std::int64_t, std::int64_t> waiting =
      WaitingMembers(turn_.state(), curves, pool_, study, plugins_);
  for (const auto& [id, live] : pool_.live) {
    const Trial& trial = *live.trial;
    if (trial.study != study.id) continue;
    if (trial.state != TrialState::kRunning && !pool_.groups.contains(id) && !waiting.empty() &&
        ComparedAt(study.spec.population, StepOfMember(turn_.state(), curves, trial)) >
            waiting.begin()->first) {
      held_for_others_.insert(id);
    } else {
      held_for_others_.erase(id);
    }
  }
}

void Trials::AskPruner(const Study& study) {
  const Pruner& pruner = *plugins_.Of(study).pruner;
  if (!pruner.pauses()) return;
  std::vector<std::size_t> paused;
  for (std::size_t i = 0; i < study.trials.size(); ++i) {
    const TrialId id = study.trials[i];
    held_by_pruner_.erase(id);
    if (turn_.state().trials.at(id).state == TrialState::kPaused) paused.push_back(i);
  }
  if (paused.empty()) return;
  for (const std::size_t i : paused) held_by_pruner_.insert(study.trials[i]);
  const std::span<const Curve> curves = curves_.Of(turn_.state(), study);
  const auto let_go = [&](std::span<const Curve> rivals, std::span<const std::size_t> of) {
    for (const std::size_t i : pruner.MayGoOn(study.spec.direction(), rivals, of)) {
      held_by_pruner_.erase(study.trials[i]);
    }
  };
  if (study.spec.constraints.empty()) {
    let_go(curves, paused);
    return;
  }
  std::vector<Curve> rivals = AsRivals(curves);
  for (const std::size_t i : paused) {
    const Curve rival = std::exchange(rivals[i], curves[i]);
    let_go(rivals, std::span(&i, 1));
    rivals[i] = rival;
  }
}

// Nobody else runs, so that nothing will change for those that wait.
void Trials::EndUnpromoted(StudyId id) {
  for (const TrialId trial : std::set<TrialId>(held_by_pruner_)) {
    const Trial& t = turn_.TrialAt(trial);
    if (t.study != id) continue;
    std::optional<double> last;
    if (!t.values.empty()) last = t.values.back().value;
    EndTrial(trial, TrialState::kPruned, absl::StrCat(t.reason, "; was never promoted"), last);
  }
}

}  // namespace espalier
