#include "tuner/api/recorded_state.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "search_spaces/formats/optuna/constraints.h"
#include "search_spaces/parameter.h"
#include "tuner/api/convert.h"
#include "tuner/messages/wire/figures_wire.h"
#include "tuner/study_file/study_file.h"

namespace espalier {

namespace {

constexpr DecisionKind kKinds[] = {
    DecisionKind::kStart,  DecisionKind::kGrow,  DecisionKind::kShrink, DecisionKind::kMove,
    DecisionKind::kPrune,  DecisionKind::kPause, DecisionKind::kResume, DecisionKind::kRestart,
    DecisionKind::kFinish, DecisionKind::kFail,  DecisionKind::kPool,   DecisionKind::kStudy};

Time MomentOf(double seconds) { return seconds > 0 ? TimeFromSeconds(seconds) : Time{}; }

// What this release has no word for is the first of them.
StudyState StateOf(v1::StudyState told) {
  for (const StudyState state :
       {StudyState::kStopped, StudyState::kComplete, StudyState::kFailed}) {
    if (ToProto(state) == told) return state;
  }
  return StudyState::kRunning;
}

TrialState StateOf(v1::TrialState told) {
  for (const TrialState state : {TrialState::kRunning, TrialState::kPaused, TrialState::kComplete,
                                 TrialState::kPruned, TrialState::kFail}) {
    if (ToProto(state) == told) return state;
  }
  return TrialState::kWaiting;
}

StudySpec SpecOf(const v1::Study& told) {
  const std::string text = MaskEnvironment(told.study_json());
  StudySpec spec;
  absl::StatusOr<StudySpec> read =
      ParseStudy(text, "study", told.directory(), SpaceFiles::kRefused);
  if (read.ok()) {
    spec = *std::move(read);
  } else {
    if (told.ask_and_tell()) spec.kind = StudyKind::kByClients;
    spec.max_trials = told.max_trials();
    spec.time_limit_s = told.time_limit_s();
    spec.cost_limit = told.cost_limit();
    if (told.has_target()) spec.target = told.target();
  }
  spec.name = told.name();
  if (!told.metric().empty()) spec.metric = told.metric();
  spec.directions.clear();
  for (const std::string& word : told.directions()) {
    spec.directions.push_back(DirectionOf(word).value_or(Direction::kMinimize));
  }
  if (spec.directions.empty()) {
    spec.directions.push_back(told.maximize() ? Direction::kMaximize : Direction::kMinimize);
  }
  spec.wording.text = told.study_json().empty() ? "" : text;
  return spec;
}

template <typename Message>
Attributes AttributesOf(const Message& told) {
  Attributes attributes;
  attributes.user.insert(told.user_attributes().begin(), told.user_attributes().end());
  attributes.system.insert(told.system_attributes().begin(), told.system_attributes().end());
  return attributes;
}

void CopyCurve(const v1::Trial& told, Trial& trial) {
  for (const v1::IntermediateValue& value : told.values()) {
    trial.values.push_back({.step = value.step(),
                            .value = value.value(),
                            .progress = value.progress(),
                            .at = TimeFromSeconds(value.at()),
                            .batch_size = value.batch_size(),
                            .promise = value.promise(),
                            .goodput = value.goodput()});
    if (value.extra().empty()) continue;
    trial.extra[value.step()].insert(value.extra().begin(), value.extra().end());
  }
  std::stable_sort(trial.values.begin(), trial.values.end(),
                   [](const auto& a, const auto& b) { return a.step < b.step; });
  for (const v1::SlotSpan& span : told.spans()) {
    SlotSpan& held =
        trial.spans.emplace_back(SlotSpan{TimeFromSeconds(span.from()), MomentOf(span.to()), {}});
    for (const v1::Slot& slot : span.slots()) {
      held.slots.push_back({NodeId(slot.node_id()), slot.index()});
    }
  }
  for (const v1::Resize& resize : told.resizes()) {
    trial.resizes.push_back({.at = TimeFromSeconds(resize.at()),
                             .generation = resize.generation(),
                             .from_replicas = resize.from_replicas(),
                             .to_replicas = resize.to_replicas(),
                             .pause_s = resize.pause_s(),
                             .after_loss = resize.after_loss(),
                             .form_s = resize.form_s(),
                             .broadcast_s = resize.broadcast_s()});
  }
}

Trial TrialOf(const v1::Trial& told, StudyId study) {
  Trial trial;
  trial.id = TrialId(told.id() > 0 ? told.id() : told.number() + 1);
  trial.study = study;
  trial.number = told.number();
  trial.state = StateOf(told.state());
  for (const v1::Parameter& parameter : told.parameters()) {
    const auto value = ParameterValueFromJson(parameter.json());
    trial.parameters.push_back(
        {parameter.name(), value.ok() ? *value : ParameterValue(parameter.json())});
  }
  CopyCurve(told, trial);
  // Of others it is the best that they have reported.
  if (told.has_value() && (trial.state == TrialState::kComplete || trial.values.empty())) {
    trial.value = told.value();
  }
  trial.other_values.assign(told.other_values().begin(), told.other_values().end());
  trial.created = MomentOf(told.created_at());
  trial.started = MomentOf(told.started_at());
  trial.ended = MomentOf(told.ended_at());
  trial.reason = told.reason();
  trial.last_output = told.last_output();
  trial.generation = told.generation();
  trial.restarts = told.restarts();
  trial.pinned_slots = told.pinned_slots();
  trial.checkpoint = told.checkpoint();
  trial.figures = FiguresIn(told);
  trial.attributes = AttributesOf(told);
  trial.constraints = ConstraintsIn(trial.attributes.system);
  if (told.has_lineage()) {
    const v1::Lineage& lineage = told.lineage();
    trial.lineage = Lineage{.parent = lineage.parent(),
                            .founder = lineage.founder(),
                            .step = lineage.has_step() ? lineage.step() : -1,
                            .fingerprint = lineage.fingerprint()};
  }
  return trial;
}

Decision DecisionOf(const v1::Decision& told, std::int64_t trials) {
  Decision decision{.at = TimeFromSeconds(told.at()),
                    .trial_number = told.trial_number() < trials ? told.trial_number() : -1,
                    .from_slots = told.from_slots(),
                    .to_slots = told.to_slots(),
                    .reason = told.reason()};
  for (const DecisionKind kind : kKinds) {
    if (ToString(kind) == told.kind()) decision.kind = kind;
  }
  if (!told.has_figures()) return decision;
  const v1::DecisionFigures& figures = told.figures();
  decision.figures = AllocationFigures{.promise = figures.promise(),
                                       .speedup_before = figures.speedup_before(),
                                       .speedup_after = figures.speedup_after(),
                                       .gain = figures.gain(),
                                       .resize_cost_s = figures.resize_cost_s()};
  for (const v1::SlotsTaken& taken : figures.from()) {
    decision.figures->from.push_back({TrialId(taken.trial_id()), taken.slots(), taken.promise()});
  }
  return decision;
}

// With the slots that they have now: that is all that is told of them.
void CopyNodes(const v1::StudyDetails& details, Time since, TunerState& state) {
  for (const v1::Node& node : details.pool().nodes()) {
    if (!state.nodes.emplace(NodeId(node.id()), node.name()).second || node.slots() == 0) continue;
    NodeSeen& seen = state.node_events.emplace_back();
    seen.id = NodeId(node.id());
    seen.up = true;
    seen.terms = {.since = since,
                  .slots = node.slots(),
                  .gpu_type = node.gpu_type(),
                  .spot = node.spot(),
                  .price_per_hour = node.price_per_hour()};
  }
  for (const v1::NodeName& node : details.former_nodes()) {
    state.nodes.emplace(NodeId(node.id()), node.name());
  }
}

}  // namespace

absl::StatusOr<TunerState> StateOf(const v1::StudyDetails& details, Time now) {
  const v1::Study& told = details.study();
  Study study;
  study.id = StudyId(std::max<std::int64_t>(1, told.id()));
  study.spec = SpecOf(told);
  study.asked = AskedForBy(study.spec);
  study.state = StateOf(told.state());
  study.reason = told.reason();
  study.created = MomentOf(told.created_at());
  study.ended = MomentOf(told.ended_at());
  study.active_s = told.elapsed_s();
  study.running_since = now;
  study.attributes = AttributesOf(told);
  study.clones = told.clones();
  TunerState state;
  for (const v1::Trial& trial : details.trials()) {
    if (trial.number() != std::ssize(study.trials)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the record of study \"", told.name(), "\" has trial ", trial.number(),
                       " as number ", study.trials.size(), ": needs all trials by number"));
    }
    Trial copied = TrialOf(trial, study.id);
    if (!state.trials.empty() && copied.id <= state.trials.rbegin()->first) {
      return absl::InvalidArgumentError(
          absl::StrCat("the record of study \"", told.name(), "\" has trial id ", copied.id.value,
                       " after ", state.trials.rbegin()->first.value, ": needs ids that ascend"));
    }
    study.trials.push_back(copied.id);
    state.last_trial = copied.id;
    state.trials.emplace(copied.id, std::move(copied));
  }
  for (const v1::Decision& decision : details.decisions()) {
    study.Note(DecisionOf(decision, details.trials_size()));
  }
  CopyNodes(details, study.created, state);
  state.last_study = study.id;
  state.study_ids.emplace(study.spec.name, study.id);
  state.studies.emplace(study.id, std::move(study));
  state.Recount();
  return state;
}

}  // namespace espalier
