#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "search_spaces/formats/optuna/constraints.h"
#include "tuner/core/state/change.h"
#include "tuner/core/state/study_facts.h"

namespace espalier {

namespace {

void RankAll(const TunerState& state, StudyId study, TrialTally& tally) {
  tally.ForgetBest();
  state.ForEachTrial(state.studies.at(study), [&tally](const Trial& trial) { tally.Rank(trial); });
}

TrialTally CountAgain(const TunerState& state, StudyId id) {
  const Study& study = state.studies.at(id);
  TrialTally tally(study.spec);
  state.ForEachTrial(study, [&](const Trial& trial) {
    tally.Add(study.spec, trial);
    tally.Rank(trial);
    for (const SlotSpan& span : trial.spans) tally.AddSpan(span, state.node_terms);
    tally.NoteSpans(trial);
  });
  return tally;
}

// When a trial has ended, or begins anew: what was answered stays.
void ForgetRankValues(Trial& trial) {
  trial.ranks = RankAnswers{trial.ranks->verdict, trial.ranks->saving, {}};
}

// The meaning of each Change: one overload a type, so that a new one does not compile without.
class Applier {
 public:
  explicit Applier(TunerState& state) : state_(state) {}

  void operator()(const StudyCreated& c) {
    ESPALIER_CHECK(state_.last_study < c.id, absl::StrCat("study id ", c.id.value, " is not new"));
    ESPALIER_CHECK(state_.FindStudy(c.spec.name) == nullptr,
                   absl::StrCat("there is a study \"", c.spec.name, "\" already"));
    Study study;
    study.id = c.id;
    study.spec = c.spec;
    study.asked = AskedForBy(c.spec);
    study.created = c.at;
    study.running_since = c.at;
    state_.studies.emplace(c.id, std::move(study));
    state_.tallies.emplace(c.id, TrialTally(c.spec));
    state_.study_ids.emplace(c.spec.name, c.id);
    state_.last_study = c.id;
  }

  void operator()(const StudyStateChanged& c) {
    Study& study = StudyAt(c.id);
    ESPALIER_CHECK(
        study.state != c.state,
        absl::StrCat("study ", c.id.value, " is ", std::string(ToString(c.state)), " already"));
    if (study.state == StudyState::kRunning) {
      study.active_s += std::max(0.0, SecondsBetween(study.running_since, c.at));
    }
    if (c.state == StudyState::kRunning) study.running_since = c.at;
    const bool ends = c.state == StudyState::kComplete || c.state == StudyState::kFailed;
    study.ended = ends ? c.at : Time{};
    study.state = c.state;
    study.reason = c.reason;
  }

  void operator()(const StudyLimitsChanged& c) {
    Study& study = StudyAt(c.id);
    study.spec.max_trials = c.max_trials;
    study.spec.time_limit_s = c.time_limit_s;
  }

  void operator()(const StudyClockSet& c) {
    Study& study = StudyAt(c.id);
    study.active_s = c.active_s;
    study.running_since = c.running_since;
  }

  void operator()(const TrialCreated& c) {
    Study& study = StudyAt(c.study);
    // Trial ids become visible in increasing order, over all studies.
    ESPALIER_CHECK(state_.last_trial < c.id,
                   absl::StrCat("trial id ", c.id.value, " is not above all others"));
    ESPALIER_CHECK(c.number == std::ssize(study.trials),
                   absl::StrCat("trial ", c.id.value, " has number ", c.number, ", study ",
                                c.study.value, " has ", study.trials.size(), " trials"));
    Trial trial;
    trial.id = c.id;
    trial.study = c.study;
    trial.number = c.number;
    trial.parameters = c.parameters;
    trial.created = c.at;
    if (TrialTally* tally = TallyOf(trial)) tally->Add(study.spec, trial);
    state_.trials.emplace_hint(state_.trials.end(), c.id, std::move(trial));
    study.trials.push_back(c.id);
    state_.last_trial = c.id;
  }

  void operator()(const TrialDrawn& c) { TrialAt(c.id).draw = ToText(c.draw); }
  void operator()(const TrialCloned& c) {
    const Trial& trial = TrialAt(c.id);
    if (!trial.lineage->cloned()) ++StudyAt(trial.study).clones;
    Tallied(c.id, [&c](Trial& clone) { clone.lineage = c.lineage; });
  }

  void operator()(const StudyDeleted& c) {
    const Study& study = StudyAt(c.id);
    auto at = state_.trials.end();
    for (const TrialId id : study.trials) {
      if (at == state_.trials.end() || at->first != id) at = state_.trials.find(id);
      state_.dropped.Take(state_.trials.extract(at++));
    }
    state_.study_ids.erase(study.spec.name);
    state_.studies.erase(c.id);
    state_.tallies.erase(c.id);
    state_.last_study = c.last_study;
    state_.last_trial = c.last_trial;
  }

  void operator()(const StudyRenamed& c) {
    StudySpec& spec = StudyAt(c.id).spec;
    state_.study_ids.erase(spec.name);
    state_.study_ids.emplace(c.name, c.id);
    Rename(spec, c.name);
  }

  void operator()(const StudyAttributeSet& c) { Set(StudyAt(c.id).attributes, c); }
  void operator()(const TrialAttributeSet& c) {
    // A trial of a study with constraints goes by figures.
    const bool constrains = c.system && IsConstraintKey(c.key) && !IsConstrained(TrialAt(c.id));
    const Trial& changed = Tallied(c.id, [&](Trial& trial) {
      Set(trial.attributes, c);
      if (constrains) trial.constraints = ConstraintsIn(trial.attributes.system);
    });
    if (constrains) Rank(changed);
  }

  void operator()(const SuggestionAdded& c) { StudyAt(c.id).suggestions.push_back(c.suggestion); }

  void operator()(const ParameterSuggested& c) {
    std::vector<SuggestedValue>& suggested = TrialAt(c.id).suggested;
    ESPALIER_CHECK(c.position >= 0 && c.position <= std::ssize(suggested),
                   absl::StrCat("trial ", c.id.value, " has no place ", c.position));
    if (c.position == std::ssize(suggested)) suggested.emplace_back();
    suggested[static_cast<std::size_t>(c.position)] = c.value;
  }

  void operator()(const TrialTold& c) {
    CheckMayFollow(TrialAt(c.id), c.state, c.source);
    Rank(Tallied(c.id, [&c](Trial& trial) {
      trial.state = c.state;
      if (Ended(c.state)) {
        ForgetRankValues(trial);
        trial.values.shrink_to_fit();
      }
      if (!c.values.empty()) {
        trial.value = c.values.front();
        trial.other_values.assign(c.values.begin() + 1, c.values.end());
      }
      if (c.started != Time{}) trial.started = c.started;
      if (c.ended != Time{}) trial.ended = c.ended;
    }));
  }

  void operator()(const TrialHeld& c) { TrialAt(c.id).held = c.held; }

  void operator()(const TrialEnvironmentSet& c) { TrialAt(c.id).environment = c.environment; }

  void operator()(const FinalValueReported& c) {
    Rank(Tallied(c.id, [&](Trial& trial) {
      trial.value = c.value;
      if (IsConstrained(trial)) TakeConstraints(StudyAt(trial.study).spec, trial);
    }));
  }

  void operator()(const TrialStateChanged& c) {
    CheckMayFollow(TrialAt(c.id), c.state, StateSource::kPool);
    Rank(Tallied(c.id, [&](Trial& trial) {
      if (c.state == TrialState::kRunning && trial.started == Time{}) trial.started = c.at;
      if (Ended(c.state)) {
        trial.ended = c.at;
        trial.values.shrink_to_fit();
      }
      // Its program begins anew, or is gone.
      if (c.state == TrialState::kRunning) trial.ranks = RankAnswers{};
      ForgetRankValues(trial);
      trial.state = c.state;
      trial.reason = c.reason;
      trial.last_output = c.last_output;
      trial.cancelled = c.cancelled;
      if (!c.value) return;
      trial.value = c.value;
      if (IsConstrained(trial)) TakeConstraints(StudyAt(trial.study).spec, trial);
    }));
  }

  void operator()(const ValueReported& c) {
    bool replaces = false;
    const Trial& changed = Tallied(c.id, [&](Trial& trial) {
      std::vector<IntermediateValue>& values = trial.values;
      const auto at = PlaceOf(values, c.value.step);
      replaces = at != values.end() && at->step == c.value.step;
      if (!replaces) {
        values.insert(at, c.value);
      } else {
        ESPALIER_CHECK(c.replace,
                       absl::StrCat("trial ", c.id.value, " has step ", c.value.step, " already"));
        *at = c.value;
      }
      if (!c.extra.empty()) {
        trial.extra[c.value.step] = c.extra;
        TakeOtherMetrics(StudyAt(trial.study).spec, c.value.step, trial);
      }
      if (!IsConstrained(trial)) return;
      TakeConstraints(StudyAt(trial.study).spec, c.value.step, trial);
    });
    if (replaces || IsConstrained(changed) || Ended(changed.state)) {
      Rank(changed);
    } else if (TrialTally* tally = TallyOf(changed)) {
      tally->RankValue(changed, c.value.value);
    }
  }

  void operator()(const RankValueTold& c) {
    TrialAt(c.id).ranks.edit().values[c.step][c.rank] = c.value;
  }

  void operator()(const RankValuesForgotten& c) {
    RankValues& values = TrialAt(c.id).ranks.edit().values;
    values.erase(values.begin(), values.lower_bound(c.below));
  }

  void operator()(const VerdictAgreed& c) {
    Trial& trial = TrialAt(c.id);
    trial.ranks = RankAnswers{c.verdict, c.saving, trial.ranks->values};
  }

  void operator()(const GenerationAdvanced& c) {
    const Trial& trial = TrialAt(c.id);
    ESPALIER_CHECK(trial.generation < c.generation,
                   absl::StrCat("trial ", c.id.value, ": generation ", c.generation, " after ",
                                trial.generation));
    Tallied(c.id, [&c](Trial& of) { of.generation = c.generation; });
  }

  void operator()(const SlotsHeldChanged& c) {
    Trial& trial = TrialAt(c.id);
    TrialTally* tally = TallyOf(trial);
    std::vector<SlotSpan>& spans = trial.spans;
    if (!spans.empty() && spans.back().to == Time{}) {
      // A span that lasted no time says nothing; a wall clock set back between two runs of the
      // service must not leave one that ends before it began.
      if (c.at <= spans.back().from) {
        spans.pop_back();
      } else {
        spans.back().to = c.at;
        if (tally != nullptr) tally->AddSpan(spans.back(), state_.node_terms);
      }
    }
    if (!c.slots.empty()) spans.push_back({c.at, Time{}, c.slots});
    if (tally != nullptr) tally->NoteSpans(trial);
  }

  void operator()(const ResizeMeasured& c) { TrialAt(c.id).resizes.push_back(c.resize); }

  void operator()(const FiguresRecorded& c) { TrialAt(c.id).figures = c.figures; }

  void operator()(const CheckpointRecorded& c) {
    Trial& trial = TrialAt(c.id);
    trial.checkpoint = c.path;
    trial.newest_checkpoint = c.label;
  }

  void operator()(const CheckpointCopySet& c) {
    std::vector<CheckpointCopy>& copies = TrialAt(c.id).copies;
    const auto at = PlaceOf(copies, c.copy.node);
    if (at != copies.end() && at->node == c.copy.node) {
      *at = c.copy;
    } else {
      copies.insert(at, c.copy);
    }
  }

  void operator()(const CheckpointCopyGone& c) {
    std::erase_if(TrialAt(c.id).copies, [&c](const auto& copy) { return copy.node == c.node; });
  }

  void operator()(const TrialPinned& c) { TrialAt(c.id).pinned_slots = c.slots; }

  void operator()(const TrialRestarted& c) { TrialAt(c.id).restarts = c.restarts; }

  void operator()(const JoinsFailed& c) { TrialAt(c.id).failed_joins = c.failed; }

  void operator()(const DecisionMade& c) { StudyAt(c.study).Note(c.decision); }

  void operator()(const NodeRegistered& c) {
    ESPALIER_CHECK(c.id && !state_.nodes.contains(c.id),
                   absl::StrCat("node id ", c.id.value, " is not new"));
    state_.nodes.emplace(c.id, c.name);
  }

  void operator()(const NodeTermsTold& c) {
    ESPALIER_CHECK(state_.nodes.contains(c.id), absl::StrCat("no node with id ", c.id.value));
    state_.node_terms[c.id].push_back(c.terms);
    for (auto& [study, tally] : state_.tallies) {
      if (tally.HeldAfter(c.id, c.terms.since)) tally = CountAgain(state_, study);
    }
  }

  void operator()(const NodeSeen& c) {
    ESPALIER_CHECK(state_.nodes.contains(c.id), absl::StrCat("no node with id ", c.id.value));
    state_.node_events.push_back(c);
    if (state_.node_events.size() > kNodeEventsKept) state_.node_events.pop_front();
  }

  void operator()(const NodeDrained& c) {
    ESPALIER_CHECK(state_.nodes.contains(c.id), absl::StrCat("no node with id ", c.id.value));
    state_.drained.erase(c.id);
    if (c.drained) state_.drained.emplace(c.id, c.ends);
  }

  void operator()(const PoolPolicySet& c) { state_.policy = c.policy; }

  void operator()(const TokenKept& c) { state_.tokens.insert_or_assign(c.token.id, c.token); }

  void operator()(const ReplicaIdsReserved& c) {
    ESPALIER_CHECK(state_.replica_ids_below <= c.below,
                   absl::StrCat("replica ids below ", state_.replica_ids_below,
                                " are reserved, not only below ", c.below));
    state_.replica_ids_below = c.below;
  }

 private:
  // The tally of the trial's study. Storage applies changes to trials that stand alone: null.
  TrialTally* TallyOf(const Trial& trial) {
    const auto it = state_.tallies.find(trial.study);
    return it == state_.tallies.end() ? nullptr : &it->second;
  }

  // Whether its study has constraints, as far as the trial does not stand alone.
  bool IsConstrained(const Trial& trial) const {
    const auto study = state_.studies.find(trial.study);
    return study != state_.studies.end() && !study->second.spec.constraints.empty();
  }

  // Changes what a tally counts of the trial.
  template <typename Edit>
  const Trial& Tallied(TrialId id, Edit edit) {
    Trial& trial = TrialAt(id);
    TrialTally* tally = TallyOf(trial);
    if (tally != nullptr) tally->LeaveOut(StudyAt(trial.study).spec, trial);
    edit(trial);
    if (tally != nullptr) tally->Add(StudyAt(trial.study).spec, trial);
    return trial;
  }

  // Sees to it that the tally has the best trial, where this one has another value.
  void Rank(const Trial& trial) {
    TrialTally* tally = TallyOf(trial);
    if (tally != nullptr && !tally->Rank(trial)) RankAll(state_, trial.study, *tally);
  }

  static void CheckMayFollow(const Trial& trial, TrialState to, StateSource source) {
    ESPALIER_CHECK(MayFollow(trial.state, to, source),
                   absl::StrCat("trial ", trial.id.value, ": ", std::string(ToString(to)),
                                " after ", std::string(ToString(trial.state))));
  }

  static std::vector<IntermediateValue>::iterator PlaceOf(std::vector<IntermediateValue>& values,
                                                          std::int64_t step) {
    return std::lower_bound(values.begin(), values.end(), step,
                            [](const IntermediateValue& v, std::int64_t s) { return v.step < s; });
  }

  static std::vector<CheckpointCopy>::iterator PlaceOf(std::vector<CheckpointCopy>& copies,
                                                       NodeId node) {
    return std::lower_bound(copies.begin(), copies.end(), node,
                            [](const CheckpointCopy& c, NodeId n) { return c.node < n; });
  }

  template <typename AttributeSet>
  static void Set(Attributes& attributes, const AttributeSet& c) {
    (c.system ? attributes.system : attributes.user).insert_or_assign(c.key, c.value);
  }

  Study& StudyAt(StudyId id) {
    const auto it = state_.studies.find(id);
    ESPALIER_CHECK(it != state_.studies.end(), absl::StrCat("no study with id ", id.value));
    return it->second;
  }

  Trial& TrialAt(TrialId id) {
    const auto it = state_.trials.find(id);
    ESPALIER_CHECK(it != state_.trials.end(), absl::StrCat("no trial with id ", id.value));
    return it->second;
  }

  TunerState& state_;
};

}  // namespace

void TunerState::Apply(const Change& change) { std::visit(Applier(*this), change); }

const Study* TunerState::FindStudy(std::string_view name) const {
  const auto it = study_ids.find(name);
  return it == study_ids.end() ? nullptr : &studies.at(it->second);
}

const TrialTally& TunerState::TallyOf(const Study& study) const {
  const auto it = tallies.find(study.id);
  ESPALIER_CHECK(it != tallies.end(), absl::StrCat("study ", study.id.value, " has no tally"));
  return it->second;
}

void TunerState::Recount() {
  tallies.clear();
  for (const auto& [id, study] : studies) tallies.emplace(id, CountAgain(*this, id));
}

std::optional<TrialId> TrialEndedBy(const Change& change) {
  if (const auto* set = std::get_if<TrialStateChanged>(&change)) {
    if (Ended(set->state)) return set->id;
  }
  if (const auto* told = std::get_if<TrialTold>(&change)) {
    if (Ended(told->state)) return told->id;
  }
  return std::nullopt;
}

std::optional<StudyId> StudyEndedBy(const Change& change) {
  if (const auto* deleted = std::get_if<StudyDeleted>(&change)) return deleted->id;
  const auto* changed = std::get_if<StudyStateChanged>(&change);
  if (changed == nullptr || changed->state == StudyState::kRunning ||
      changed->state == StudyState::kStopped) {
    return std::nullopt;
  }
  return changed->id;
}

}  // namespace espalier
