#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/trial_folder.h"
#include "tuner/api/convert.h"
#include "tuner/api/notes.h"
#include "tuner/api/shown_attributes.h"
#include "tuner/core/state/newest_figure.h"
#include "tuner/core/state/refusals.h"
#include "tuner/core/state/slot_time.h"
#include "tuner/core/state/study_facts.h"
#include "tuner/web/view/best_value.h"
#include "tuner/web/view/heading.h"
#include "tuner/web/view/json_text.h"
#include "tuner/web/view/shown_decision.h"
#include "tuner/web/view/trial_lineage.h"
#include "tuner/web/view/views.h"
#include "tuner/web/view/words.h"

namespace espalier::view {

namespace {

constexpr std::size_t kDecisionsOfTrial = 50;  // the newest ones
constexpr std::size_t kSpansOfTrial = 2000;    // likewise

struct Process {
  std::string node;
  int slot = 0;
  std::optional<int> pid;
};

// One of the study's constraints, and what the trial has told of it last.
struct KeptConstraint {
  std::string text;
  std::optional<double> figure;
  std::optional<bool> broken;
};

// A trial without its curve, copied.
struct TrialFacts {
  Heading heading;
  Trial trial;  // without values and what only programs need
  std::string study;
  Parameters parameters;
  Attributes attributes;
  Note note;
  BestSoFar best;
  std::vector<std::string> metrics;           // names of several; none: there is one
  std::vector<std::optional<double>> values;  // of these; else the final ones
  std::optional<IntermediateValue> newest;
  double slot_seconds = 0;
  TrialActivity now;
  std::map<NodeId, std::string> nodes;
  std::vector<Process> processes;
  std::string folder;  // on the node of its first slot; empty: not known
  std::vector<ShownDecision> decisions;
  std::optional<bool> infeasible;  // none: it has told nothing of what it has to keep
  std::vector<KeptConstraint> constraints;
  std::optional<ShownLineage> lineage;
};

void CopyPlain(const Trial& from, Trial& to) {
  to.id = from.id;
  to.study = from.study;
  to.number = from.number;
  to.state = from.state;
  to.reason = from.reason;
  to.last_output = from.last_output;
  to.created = from.created;
  to.started = from.started;
  to.ended = from.ended;
  to.pinned_slots = from.pinned_slots;
  to.restarts = from.restarts;
  const std::size_t spans = std::min(from.spans.size(), kSpansOfTrial);
  to.spans.assign(from.spans.end() - static_cast<std::ptrdiff_t>(spans), from.spans.end());
}

void FindPlaces(const Trial& trial, const Study& study, const View& view, TrialFacts& facts) {
  const auto& names = view.core.state().nodes;
  for (const SlotSpan& span : facts.trial.spans) {
    for (const Slot& slot : span.slots) {
      if (const auto node = names.find(slot.node); node != names.end()) facts.nodes.insert(*node);
    }
  }
  for (const NodeView& node : view.core.Nodes()) {
    for (const ReplicaView& replica : node.replicas) {
      if (replica.trial != trial.id) continue;
      Process& process = facts.processes.emplace_back(Process{node.name, replica.slot, {}});
      const auto pid = view.pids.find(replica.replica);
      if (pid != view.pids.end()) process.pid = pid->second;
    }
  }
  if (trial.spans.empty() || trial.spans.back().slots.empty()) return;
  const auto node = names.find(trial.spans.back().slots.front().node);
  if (node == names.end()) return;
  const auto folder = view.folders.find(node->second);
  if (folder == view.folders.end() || folder->second.empty()) return;
  facts.folder = TrialFolder(folder->second, study.spec.name, trial.number);
}

void FindValues(const Trial& trial, const StudySpec& spec, TrialFacts& facts) {
  facts.metrics = MetricsOf(spec);
  if (facts.metrics.empty()) {
    if (trial.value) facts.values.push_back(trial.value);
    facts.values.insert(facts.values.end(), trial.other_values.begin(), trial.other_values.end());
    return;
  }
  for (std::size_t i = 0; i < facts.metrics.size(); ++i) {
    facts.values.push_back(ValueOf(trial, spec, i));
  }
}

void FindConstraints(const Trial& trial, const StudySpec& spec, TrialFacts& facts) {
  facts.infeasible = BreaksIfTold(spec, trial);
  for (const Constraint& constraint : spec.constraints) {
    KeptConstraint& kept = facts.constraints.emplace_back();
    kept.text = ToText(constraint);
    kept.figure = NewestFigure(spec, constraint, trial);
    if (kept.figure) kept.broken = !(constraint.Violation(*kept.figure) <= 0);
  }
}

TrialFacts FactsOf(const Trial& trial, const View& view) {
  const TunerState& state = view.core.state();
  const Study& study = state.studies.at(trial.study);
  TrialFacts facts;
  CopyPlain(trial, facts.trial);
  facts.study = study.spec.name;
  facts.parameters = ParametersOf(trial, study);
  facts.attributes = ShownAttributes(trial, view.shows_secrets);
  facts.note = NoteOf(study.attributes.system, trial.id);
  facts.best = BestOf(trial, study.spec);
  FindValues(trial, study.spec, facts);
  if (!trial.values.empty()) facts.newest = trial.values.back();
  facts.slot_seconds = SlotSeconds(trial, view.now);
  facts.now = view.core.Activity(trial.id);
  FindPlaces(trial, study, view, facts);
  FindConstraints(trial, study.spec, facts);
  facts.lineage = LineageOf(trial, study, state);
  for (std::size_t i = study.decisions.size(); i > 0 && facts.decisions.size() < kDecisionsOfTrial;
       --i) {
    if (study.decisions[i - 1].trial_number != trial.number) continue;
    facts.decisions.push_back(DecisionAt(state, study, i - 1));
  }
  return facts;
}

// ---- as JSON

void PutPositive(JsonText& json, std::string_view key, double number) {
  json.Key(key);
  number > 0 ? json.Value(number) : json.Null();
}

void PutSpans(JsonText& json, const TrialFacts& facts) {
  json.Key("spans");
  json.Array(facts.trial.spans, [&](const SlotSpan& span) {
    json.Object([&] {
      json.Member("from", span.from);
      json.Member("to", span.to);
      json.Key("slots");
      json.Array(span.slots, [&](const Slot& slot) {
        const auto node = facts.nodes.find(slot.node);
        json.Object([&] {
          json.Member("node", node == facts.nodes.end() ? std::string() : node->second);
          json.Member("slot", slot.index);
        });
      });
    });
  });
}

void PutProcesses(JsonText& json, const TrialFacts& facts) {
  json.Key("replicas");
  json.Array(facts.processes, [&json](const Process& process) {
    json.Object([&] {
      json.Member("node", process.node);
      json.Member("slot", process.slot);
      json.Key("rank");
      json.Null();
      json.Member("pid", process.pid);
      json.Key("slow");
      json.Null();
    });
  });
  json.Key("ranks");
  facts.now.replicas > 0 ? json.Value(facts.now.replicas) : json.Null();
}

void PutFigures(JsonText& json, const TrialFacts& facts) {
  json.Member("slots", facts.now.slots);
  // Of one that has ended: as it was when it told its last value.
  const double last = facts.newest ? static_cast<double>(facts.newest->promise) : 0;
  PutPositive(json, "promise", Ended(facts.trial.state) ? last : facts.now.promise);
  for (const FigureRow& row : kFigureRows) {
    PutPositive(json, row.name, facts.now.figures[row.figure]);
  }
}

void PutConstraints(JsonText& json, const TrialFacts& facts) {
  json.Member("infeasible", facts.infeasible);
  json.Key("constraints");
  json.Array(facts.constraints, [&json](const KeptConstraint& kept) {
    json.Object([&] {
      json.Member("text", kept.text);
      json.Member("figure", kept.figure);
      json.Member("broken", kept.broken);
    });
  });
}

void PutTrial(JsonText& json, const TrialFacts& facts) {
  const Trial& trial = facts.trial;
  json.Member("id", trial.id.value);
  json.Member("number", trial.number);
  json.Member("study_id", trial.study.value);
  json.Member("study", facts.study);
  json.Member("state", WordOf(trial.state));
  json.Member("value", facts.best.value);
  json.Member("best_step", facts.best.step);
  json.Values("metrics", facts.metrics);
  json.Values("values", facts.values);
  PutConstraints(json, facts);
  json.Member("reason", trial.reason);
  json.Member("last_output", trial.last_output);
  json.Member("created_at", trial.created);
  json.Member("started_at", trial.started);
  json.Member("ended_at", trial.ended);
  PutFigures(json, facts);
  json.Key("step");
  facts.newest ? json.Value(facts.newest->step) : json.Null();
  json.Member("slot_seconds", facts.slot_seconds);
  json.Member("restarts", trial.restarts);
  PutPositive(json, "pinned", trial.pinned_slots);
  json.Key("parameters");
  Put(json, facts.parameters);
  json.Key("lineage");
  Put(json, facts.lineage);
  PutTexts(json, "user_attributes", facts.attributes.user);
  PutTexts(json, "system_attributes", facts.attributes.system);
  json.Member("note", facts.note.body);
  PutSpans(json, facts);
  PutProcesses(json, facts);
  json.Key("log_path");
  facts.folder.empty() ? json.Null() : json.Value(facts.folder);
}

absl::StatusOr<TrialFacts> ReadFacts(const Source& source, TrialId id) {
  std::optional<TrialFacts> facts;
  ESPALIER_RETURN_IF_ERROR(source.tuner.Read([&](const View& view) {
    const auto trial = view.core.state().trials.find(id);
    if (trial == view.core.state().trials.end()) return;
    facts = FactsOf(trial->second, view);
    facts->heading = HeadingOf(source);
  }));
  if (!facts) return NoTrial(id);
  return *std::move(facts);
}

}  // namespace

absl::StatusOr<std::string> TrialJson(const Source& source, TrialId id) {
  ESPALIER_ASSIGN_OR_RETURN(const TrialFacts facts, ReadFacts(source, id));
  ESPALIER_ASSIGN_OR_RETURN(const std::vector<ShownClone> clones, ClonesOf(source, id));
  JsonText json;
  json.Object([&] {
    PutHeading(json, facts.heading);
    json.Key("trial");
    json.Object([&] { PutTrial(json, facts); });
    json.Key("decisions");
    json.Array(facts.decisions, [&json](const ShownDecision& decision) { Put(json, decision); });
    json.Key("clones");
    json.Array(clones, [&json](const ShownClone& clone) {
      json.Object([&] {
        json.Member("trial_id", clone.id.value);
        json.Member("trial", clone.number);
        json.Member("state", WordOf(clone.state));
        json.Member("step", clone.step);
      });
    });
  });
  return json.Take();
}

absl::StatusOr<std::string> TrialAloneJson(const Source& source, TrialId id) {
  ESPALIER_ASSIGN_OR_RETURN(const TrialFacts facts, ReadFacts(source, id));
  JsonText json;
  json.Object([&] { PutTrial(json, facts); });
  return json.Take();
}

}  // namespace espalier::view
