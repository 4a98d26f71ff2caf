#include "tuner/api/convert.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "search_spaces/formats/optuna/distribution.h"
#include "tuner/api/pool_warnings.h"
#include "tuner/api/shown_attributes.h"
#include "tuner/api/study_notice.h"
#include "tuner/api/trial_command.h"
#include "tuner/core/state/payments.h"
#include "tuner/core/state/study_facts.h"
#include "tuner/core/studies/like.h"
#include "tuner/messages/wire/figures_wire.h"
#include "tuner/study_file/study_file.h"

namespace espalier {

namespace {

const Study& StudyOf(const Trial& trial, const TunerState& state) {
  const auto it = state.studies.find(trial.study);
  ESPALIER_CHECK(it != state.studies.end(), "a trial belongs to a study");
  return it->second;
}

double SecondsOrZero(Time t) { return t == Time{} ? 0 : Seconds(t); }

// To a study's message or a trial's.
template <typename Message>
void AddAttributes(const Attributes& attributes, Message& out) {
  out.mutable_user_attributes()->insert(attributes.user.begin(), attributes.user.end());
  out.mutable_system_attributes()->insert(attributes.system.begin(), attributes.system.end());
}

// Where it is not the study's own, which has a place of its own: a study may have many trials.
void AddCommand(const Trial& trial, const Study& study, const View& view, v1::Trial& out) {
  const auto has_brace = [](const std::string& word) { return word.find('{') != word.npos; };
  if (!std::any_of(study.spec.command.begin(), study.spec.command.end(), has_brace)) return;
  for (std::string& word : CommandOf(trial, study, view)) out.add_command(std::move(word));
}

// JSON has no other numbers than finite ones, and Optuna's choices may be such.
std::string JsonOrText(const ParameterValue& value) {
  const auto* number = std::get_if<double>(&value);
  if (number == nullptr || std::isfinite(*number)) return ToJson(value);
  return ToJson(ParameterValue(std::string(std::isnan(*number) ? "NaN"
                                           : *number > 0       ? "Infinity"
                                                               : "-Infinity")));
}

v1::IntermediateValue ToProto(const IntermediateValue& value, const Trial& trial) {
  v1::IntermediateValue point;
  point.set_step(value.step);
  point.set_value(value.value);
  point.set_at(Seconds(value.at));
  point.set_progress(value.progress);
  point.set_batch_size(value.batch_size);
  point.set_promise(value.promise);
  point.set_goodput(value.goodput);
  if (const auto extra = trial.extra.find(value.step); extra != trial.extra.end()) {
    point.mutable_extra()->insert(extra->second.begin(), extra->second.end());
  }
  return point;
}

// To a study's message or a trial's.
template <typename Message>
void AddPayments(const std::vector<Payment>& payments, Message& out) {
  for (const Payment& payment : payments) {
    v1::Payment& added = *out.add_payments();
    added.set_node_template(payment.node_template);
    added.set_gpu_type(payment.gpu_type);
    added.set_spot(payment.spot);
    added.set_price_per_hour(payment.price_per_hour);
    added.set_slot_seconds(payment.slot_seconds);
    added.set_node_seconds(payment.node_seconds);
    added.set_cost(payment.cost);
  }
}

void AddDraw(const Trial& trial, const Study& study, v1::Trial& out) {
  if (trial.draw->empty()) return;
  const absl::StatusOr<TrialDraw> draw = ReadTrialDraw(*trial.draw);
  if (!draw.ok()) return;
  v1::TrialDraw& to = *out.mutable_draw();
  to.set_known(draw->known);
  to.set_running(TextOf(draw->running));
  to.set_held_back(HeldBackText(draw->held_back));
  to.set_left_out(TextOf(draw->left_out));
  const auto& dimensions = study.spec.space.dimensions();
  for (const int place : draw->given) {
    if (place < std::ssize(dimensions)) {
      to.add_given(dimensions[static_cast<std::size_t>(place)].name);
    }
  }
  to.set_by(draw->by);
}

void AddLineage(const Lineage& lineage, v1::Trial& out) {
  if (!lineage.cloned()) return;
  v1::Lineage& to = *out.mutable_lineage();
  to.set_parent(lineage.parent);
  to.set_founder(lineage.founder);
  if (lineage.awaited()) return;
  to.set_step(lineage.step);
  to.set_fingerprint(lineage.fingerprint);
}

void AddCurves(const Trial& trial, v1::Trial& out) {
  for (const IntermediateValue& value : trial.values) *out.add_values() = ToProto(value, trial);
  for (const SlotSpan& span : trial.spans) {
    v1::SlotSpan& held = *out.add_spans();
    held.set_from(Seconds(span.from));
    held.set_to(SecondsOrZero(span.to));
    for (const Slot& slot : span.slots) {
      v1::Slot& added = *held.add_slots();
      added.set_node_id(slot.node.value);
      added.set_index(slot.index);
    }
  }
  for (const Resize& resize : trial.resizes) {
    v1::Resize& measured = *out.add_resizes();
    measured.set_at(Seconds(resize.at));
    measured.set_generation(resize.generation);
    measured.set_from_replicas(resize.from_replicas);
    measured.set_to_replicas(resize.to_replicas);
    measured.set_pause_s(resize.pause_s);
    measured.set_after_loss(resize.after_loss);
    measured.set_form_s(resize.form_s);
    measured.set_broadcast_s(resize.broadcast_s);
  }
}

std::string_view PhaseName(GroupPhase phase) {
  switch (phase) {
    case GroupPhase::kNone:
      return "";
    case GroupPhase::kMeeting:
      return "forming a group";
    case GroupPhase::kHandingOver:
      return "handing over state";
    case GroupPhase::kSaving:
      return "saving a checkpoint";
  }
  return "";
}

void AddActivity(const TrialActivity& activity, v1::Trial& out) {
  out.set_slots(activity.slots);
  out.set_promise(activity.promise);
  out.set_epoch(activity.epoch);
  out.set_group_phase(std::string(PhaseName(activity.forming.phase)));
  out.set_moved_bytes(activity.forming.bytes);
  out.set_moved_bytes_total(activity.forming.bytes_total);
  out.set_not_rehearsed(activity.not_rehearsed);
  SetFigures(activity.figures, out);
}

}  // namespace

v1::StudyState ToProto(StudyState state) {
  switch (state) {
    case StudyState::kRunning:
      return v1::STUDY_RUNNING;
    case StudyState::kStopped:
      return v1::STUDY_STOPPED;
    case StudyState::kComplete:
      return v1::STUDY_COMPLETE;
    case StudyState::kFailed:
      return v1::STUDY_FAILED;
  }
  return v1::STUDY_STATE_UNSPECIFIED;
}

v1::TrialState ToProto(TrialState state) {
  switch (state) {
    case TrialState::kWaiting:
      return v1::TRIAL_WAITING;
    case TrialState::kRunning:
      return v1::TRIAL_RUNNING;
    case TrialState::kPaused:
      return v1::TRIAL_PAUSED;
    case TrialState::kComplete:
      return v1::TRIAL_COMPLETE;
    case TrialState::kPruned:
      return v1::TRIAL_PRUNED;
    case TrialState::kFail:
      return v1::TRIAL_FAIL;
  }
  return v1::TRIAL_STATE_UNSPECIFIED;
}

v1::Decision ToProto(const Decision& decision) {
  v1::Decision out;
  out.set_at(Seconds(decision.at));
  out.set_trial_number(decision.trial_number);
  out.set_kind(std::string(ToString(decision.kind)));
  out.set_from_slots(decision.from_slots);
  out.set_to_slots(decision.to_slots);
  out.set_reason(decision.reason);
  if (!decision.figures) return out;
  v1::DecisionFigures& figures = *out.mutable_figures();
  figures.set_promise(decision.figures->promise);
  figures.set_speedup_before(decision.figures->speedup_before);
  figures.set_speedup_after(decision.figures->speedup_after);
  figures.set_gain(decision.figures->gain);
  figures.set_resize_cost_s(decision.figures->resize_cost_s);
  for (const SlotsTaken& taken : decision.figures->from) {
    v1::SlotsTaken& added = *figures.add_from();
    added.set_trial_id(taken.trial.value);
    added.set_slots(taken.slots);
    added.set_promise(taken.promise);
  }
  return out;
}

double RemainingSeconds(const Study& study, const TunerState& state, Time now) {
  if (study.state == StudyState::kComplete || study.state == StudyState::kFailed) return 0;
  const double elapsed_s = ElapsedSeconds(study, now);
  double remaining_s = -1;
  if (study.spec.time_limit_s > 0) {
    remaining_s = std::max(0.0, study.spec.time_limit_s - elapsed_s);
  }
  const double done = study.spec.max_trials > 0 ? state.TallyOf(study).done() : 0;
  if (study.spec.max_trials > 0 && done > 0 && elapsed_s > 0) {
    const std::int64_t beside = study.spec.population.on() ? 0 : study.clones;
    const auto all = static_cast<double>(study.spec.max_trials + beside);
    const double left = std::max(0.0, all - done);
    const double by_trials_s = left * elapsed_s / done;
    remaining_s = remaining_s < 0 ? by_trials_s : std::min(remaining_s, by_trials_s);
  }
  return remaining_s;
}

Parameters ParametersOf(const Trial& trial, const Study& study) {
  Parameters parameters = trial.parameters;
  for (const SuggestedValue& suggested : trial.suggested) {
    const Suggestion& from = study.suggestions[static_cast<std::size_t>(suggested.suggestion)];
    const absl::StatusOr<OptunaDistribution> distribution =
        ParseOptunaDistribution(from.distribution);
    parameters.push_back({from.name, distribution.ok() ? OptunaValue(*distribution, suggested.value)
                                                       : ParameterValue(suggested.value)});
  }
  return parameters;
}

std::string DefinitionText(const Study& study, bool shows_secrets) {
  const std::string& kept = study.spec.wording.text;
  std::string text = kept.empty() ? WriteStudy(DefinitionOf(study)) : kept;
  const bool masked = !shows_secrets && !study.spec.environment.empty();
  return masked ? MaskEnvironment(text) : text;
}

v1::Study ToProto(const Study& study, const View& view) {
  const TunerState& state = view.core.state();
  v1::Study out;
  out.set_id(study.id.value);
  out.set_name(study.spec.name);
  out.set_state(ToProto(study.state));
  out.set_reason(study.reason);
  out.set_maximize(study.spec.direction() == Direction::kMaximize);
  out.set_metric(study.spec.metric);
  out.set_max_trials(study.spec.max_trials);
  out.set_clones(study.clones);
  out.set_time_limit_s(study.spec.time_limit_s);
  out.set_elapsed_s(ElapsedSeconds(study, view.now));
  out.set_remaining_s(RemainingSeconds(study, state, view.now));
  out.set_slot_seconds(SlotSeconds(state, study, view.now));
  out.set_spent(SpentOn(state, study, view.now));
  AddPayments(PaymentsFor(state, study, view.now), out);
  out.set_cost_limit(study.spec.cost_limit);
  out.set_notice(StudyNotice(study, view));
  out.set_like(LikeText(study.spec));
  if (study.spec.target) out.set_target(*study.spec.target);
  out.set_ask_and_tell(study.spec.by_clients());
  for (const Direction direction : study.spec.directions) {
    out.add_directions(std::string(ToString(direction)));
  }
  if (!study.spec.other_metrics.empty()) {
    out.add_metrics(study.spec.metric);
    for (const std::string& metric : study.spec.other_metrics) out.add_metrics(metric);
  }
  for (const Constraint& constraint : study.spec.constraints) {
    out.add_constraints(ToText(constraint));
  }
  AddAttributes(ShownAttributes(study), out);
  const TrialTally& tally = state.TallyOf(study);
  for (const TrialState of : {TrialState::kWaiting, TrialState::kRunning, TrialState::kPaused,
                              TrialState::kComplete, TrialState::kPruned, TrialState::kFail}) {
    const std::int64_t trials = tally.count(of);
    if (trials > 0) (*out.mutable_trials_by_state())[std::string(ToString(of))] = trials;
  }
  if (const auto& best = tally.best()) {
    out.set_best_trial(best->number);
    out.set_best_value(best->value);
  }
  out.set_created_at(SecondsOrZero(study.created));
  out.set_ended_at(SecondsOrZero(study.ended));
  out.set_study_json(DefinitionText(study, view.shows_secrets));
  out.set_directory(study.spec.directory);
  return out;
}

v1::Trial ToProto(const Trial& trial, const View& view, bool with_curves) {
  v1::Trial out;
  out.set_id(trial.id.value);
  out.set_number(trial.number);
  out.set_state(ToProto(trial.state));
  const Study& study = StudyOf(trial, view.core.state());
  for (const Parameter& parameter : ParametersOf(trial, study)) {
    v1::Parameter& added = *out.add_parameters();
    added.set_name(parameter.name);
    added.set_json(JsonOrText(parameter.value));
  }
  out.mutable_other_values()->Add(trial.other_values.begin(), trial.other_values.end());
  out.set_infeasible(Breaks(study.spec, trial));
  AddLineage(*trial.lineage, out);
  if (with_curves) AddAttributes(ShownAttributes(trial, view.shows_secrets), out);
  const Direction direction = study.spec.direction();
  const auto value = study.spec.other_metrics.empty() || trial.value || trial.values.empty()
                         ? BestValue(trial, direction)
                         : std::optional(trial.values.back().value);  // of a step, as the others
  if (value) out.set_value(*value);
  out.set_created_at(SecondsOrZero(trial.created));
  out.set_started_at(SecondsOrZero(trial.started));
  out.set_ended_at(SecondsOrZero(trial.ended));
  if (!trial.values.empty()) {
    out.set_step(trial.values.back().step);
    out.set_batch_size(trial.values.back().batch_size);
  }
  out.set_reason(trial.reason);
  out.set_last_output(trial.last_output);
  out.set_generation(trial.generation);
  out.set_pinned_slots(trial.pinned_slots);
  AddDraw(trial, study, out);
  out.set_restarts(trial.restarts);
  out.set_failed_joins(trial.failed_joins->in_a_row);
  out.set_not_growing(WhyNotGrowing(trial));
  out.set_checkpoint(trial.checkpoint);
  for (const CheckpointCopy& copy : trial.copies) {
    if (!copy.what.Is(*trial.newest_checkpoint)) continue;
    const auto& nodes = view.core.state().nodes;
    if (const auto node = nodes.find(copy.node); node != nodes.end()) {
      out.add_checkpoint_nodes(node->second);
    }
  }
  // An ended trial may hold slots for a moment longer, and that is worth seeing too.
  AddActivity(view.core.Activity(trial.id), out);
  if (with_curves) {
    AddCommand(trial, study, view, out);
    AddPayments(PaymentsFor(view.core.state(), trial, view.now), out);
    AddCurves(trial, out);
  }
  return out;
}

v1::TrialRecord ToRecord(const Trial& trial, const View& view) {
  const Study& study = StudyOf(trial, view.core.state());
  v1::TrialRecord out;
  out.set_trial_id(trial.id.value);
  out.set_study(study.spec.name);
  out.set_number(trial.number);
  out.set_state(ToProto(trial.state));
  std::string parameters = "{";
  for (const Parameter& parameter : ParametersOf(trial, study)) {
    absl::StrAppend(&parameters, parameters.size() > 1 ? "," : "",
                    ToJson(ParameterValue(parameter.name)), ":", JsonOrText(parameter.value));
  }
  out.set_parameters(parameters + "}");
  if (trial.value) out.add_values(*trial.value);
  out.mutable_values()->Add(trial.other_values.begin(), trial.other_values.end());
  for (const IntermediateValue& value : trial.values) {
    *out.add_intermediate_values() = ToProto(value, trial);
  }
  AddAttributes(ShownAttributes(trial, view.shows_secrets), out);
  out.set_created_at(SecondsOrZero(trial.created));
  out.set_started_at(SecondsOrZero(trial.started));
  out.set_ended_at(SecondsOrZero(trial.ended));
  out.set_reason(trial.reason);
  for (std::string& word : CommandOf(trial, study, view)) out.add_command(std::move(word));
  return out;
}

v1::Pool PoolToProto(const View& view) {
  const TunerState& state = view.core.state();
  v1::Pool out;
  out.set_slots(view.core.SlotsTotal());
  out.set_slots_held(view.core.SlotsHeld());
  const auto name_of = [&state](NodeId id) {
    const auto node = state.nodes.find(id);
    return node == state.nodes.end() ? std::string() : node->second;
  };
  for (const NodeFault& fault : view.core.Faults()) {
    v1::NodeFault& added = *out.add_faults();
    added.set_from(name_of(fault.from));
    added.set_to(name_of(fault.to));
    added.set_address(fault.address);
    added.set_error(fault.error);
    added.set_at(Seconds(fault.at));
    added.set_until(Seconds(fault.until));
  }
  if (const auto policy = view.core.PoolPolicy()) out.set_policy(TextOf(*policy));
  const std::vector<NodeView> nodes = view.core.Nodes();
  for (const std::string& warning : PoolWarnings(nodes, view.hosts)) out.add_warnings(warning);
  for (const std::string& trouble : view.engine_troubles) out.add_warnings(trouble);
  for (const std::string& trouble : view.disk_troubles) out.add_warnings(trouble);
  out.set_page(view.page.url);
  out.set_page_needs_token(view.page.needs_token);
  for (const NodeView& node : nodes) {
    v1::Node& added = *out.add_nodes();
    added.set_id(node.id.value);
    added.set_name(node.name);
    added.set_slots(node.slots);
    added.set_connected(node.connected);
    added.set_gpu_type(node.gpu_type);
    added.set_spot(node.spot);
    added.set_price_per_hour(node.price_per_hour);
    added.set_draining(node.draining);
    added.set_drain_ends_at(SecondsOrZero(node.drain_ends));
    for (const auto& [slot, reason] : node.unusable) {
      v1::UnusableSlot& unusable = *added.add_unusable();
      unusable.set_slot(slot);
      unusable.set_reason(reason);
    }
    if (const auto gpus = view.gpus.find(node.name); gpus != view.gpus.end()) {
      for (const NodeGpu& gpu : gpus->second) {
        v1::Gpu& told = *added.add_gpus();
        told.set_name(gpu.name);
        told.set_uuid(gpu.uuid);
        told.set_memory_bytes(gpu.memory_bytes);
      }
    }
    for (const ReplicaView& replica : node.replicas) {
      v1::SlotHolder& holder = *added.add_holders();
      holder.set_slot(replica.slot);
      holder.set_trial_id(replica.trial.value);
      holder.set_replica_id(replica.replica.value);
      if (const auto pid = view.pids.find(replica.replica); pid != view.pids.end()) {
        holder.set_pid(pid->second);
      }
      const auto trial = state.trials.find(replica.trial);
      if (trial == state.trials.end()) continue;
      holder.set_study(StudyOf(trial->second, state).spec.name);
      holder.set_trial_number(trial->second.number);
    }
  }
  return out;
}

}  // namespace espalier
