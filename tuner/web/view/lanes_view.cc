#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/shortened.h"
#include "tuner/core/state/refusals.h"
#include "tuner/web/view/heading.h"
#include "tuner/web/view/json_text.h"
#include "tuner/web/view/lane_columns.h"
#include "tuner/web/view/node_history.h"
#include "tuner/web/view/slices.h"
#include "tuner/web/view/views.h"

namespace espalier::view {

namespace {

constexpr int kUseColumns = 400;
constexpr int kMarkColumns = 1000;
// Slots times columns, so that an answer and what is kept for it have a bound.
constexpr std::int64_t kMaxCells = 200'000;
constexpr std::size_t kTrialsInUnit = 32;  // trials that are only looked at
constexpr std::size_t kMaxReason = 300;    // bytes

using Lane = LaneSpans::Lane;

// Something that was decided, for one moment of the lanes; several of one kind in one column are
// one.
struct Mark {
  Time at;
  std::string_view kind;
  TrialId trial;
  std::int64_t number = -1;
  StudyId study;
  NodeId node;
  std::string reason;
  std::int64_t count = 1;
};

struct LaneNode {
  std::string name;
  int slots = 0;
  std::string gpu_type;
  bool up = false;
};

// Kinds that concern no trial are no marks.
bool IsMark(const Decision& decision) { return decision.trial_number >= 0; }

// Where the trial was at that moment, or came to be next; none: nowhere.
NodeId NodeAt(const Trial& trial, Time at) {
  for (const SlotSpan& span : trial.spans) {
    if ((span.to == Time{} || span.to > at) && !span.slots.empty()) return span.slots[0].node;
  }
  return NodeId{};
}

// What is copied from the core for the lanes, a slice at a time.
class LaneCopies {
 public:
  LaneCopies(const TimeColumns& columns, std::optional<StudyId> only)
      : spans_(columns),
        use_(TimeColumns(columns.from(), columns.to(), std::min(columns.columns(), kUseColumns))),
        mark_columns_(columns.from(), columns.to(), std::min(columns.columns(), kMarkColumns)),
        only_(only),
        study_(only.value_or(StudyId{})) {}

  // True: all has been copied.
  bool GoOn(const View& view, Slice& slice) {
    const TunerState& state = view.core.state();
    for (auto at = state.studies.lower_bound(study_); at != state.studies.end(); ++at) {
      if (only_ && at->first != *only_) return true;
      if (at->first != study_) Begin(at->first);
      if (!CopySpans(at->second, view, slice)) return false;
      if (!CopyMarks(at->second, state, slice)) return false;
      slice.Spend(1);
    }
    return true;
  }

  const LaneSpans& spans() const { return spans_; }
  const SlotUse& use() const { return use_; }
  // By time.
  std::vector<Mark> Marks() const {
    std::vector<Mark> marks;
    for (const auto& [place, mark] : marks_) marks.push_back(mark);
    std::stable_sort(marks.begin(), marks.end(),
                     [](const Mark& a, const Mark& b) { return a.at < b.at; });
    return marks;
  }
  const std::map<StudyId, std::string>& studies() const { return studies_; }

 private:
  void Begin(StudyId study) {
    study_ = study;
    number_ = 0;
    ordinal_ = 0;
  }

  // False: the slice is used up.
  bool CopySpans(const Study& study, const View& view, Slice& slice) {
    const TunerState& state = view.core.state();
    const TimeColumns& window = use_.columns();
    const auto& held = state.TallyOf(study).held_times();
    for (; number_ < held.size(); ++number_) {
      if (number_ % kTrialsInUnit == 0) slice.Spend(1);
      if (!slice.HasRoom()) return false;
      const auto& time = held[number_];
      const Time end = time.to == Time{} ? view.now : time.to;
      if (time.from == Time{} || !window.Touches(time.from, end)) continue;
      CopyTrial(state.trials.at(study.trials[number_]), view.now, slice);
      studies_.try_emplace(study.id, study.spec.name);
    }
    return true;
  }

  void CopyTrial(const Trial& trial, Time now, Slice& slice) {
    const TimeColumns& window = use_.columns();
    slice.Spend(1 + trial.spans.size() / kTrialsInUnit);
    for (const SlotSpan& span : trial.spans) {
      const Time end = span.to == Time{} ? now : span.to;
      if (!window.Touches(span.from, end)) continue;
      for (const Slot& slot : span.slots) {
        spans_.Add({.slot = slot,
                    .from = span.from,
                    .to = span.to,
                    .trial = trial.id,
                    .number = trial.number,
                    .study = trial.study},
                   now);
        use_.Add(span.from, end);
      }
      slice.Spend(span.slots.size());
    }
  }

  bool CopyMarks(const Study& study, const TunerState& state, Slice& slice) {
    const std::int64_t first = study.decisions_made - std::ssize(study.decisions);
    if (ordinal_ == 0) {
      const auto from = std::partition_point(
          study.decisions.begin(), study.decisions.end(),
          [this](const Decision& decision) { return decision.at < mark_columns_.from(); });
      ordinal_ = first + (from - study.decisions.begin());
    }
    ordinal_ = std::max(ordinal_, first);
    for (; ordinal_ < study.decisions_made; ++ordinal_) {
      if (!slice.HasRoom()) return false;
      slice.Spend(1);
      const Decision& decision = study.decisions[static_cast<std::size_t>(ordinal_ - first)];
      if (decision.at > mark_columns_.to()) break;
      if (IsMark(decision)) AddMark(decision, study, state);
    }
    return true;
  }

  void AddMark(const Decision& decision, const Study& study, const TunerState& state) {
    const auto [at, added] =
        marks_.try_emplace({mark_columns_.Of(decision.at), decision.kind, study.id});
    Mark& mark = at->second;
    if (!added) {
      ++mark.count;
      return;
    }
    const Trial& trial =
        state.trials.at(study.trials.at(static_cast<std::size_t>(decision.trial_number)));
    mark = {.at = decision.at,
            .kind = ToString(decision.kind),
            .trial = trial.id,
            .number = trial.number,
            .study = study.id,
            .node = NodeAt(trial, decision.at),
            .reason = Shortened(decision.reason, kMaxReason)};
    studies_.try_emplace(study.id, study.spec.name);
  }

  LaneSpans spans_;
  SlotUse use_;
  TimeColumns mark_columns_;
  std::map<std::tuple<int, DecisionKind, StudyId>, Mark> marks_;
  std::map<StudyId, std::string> studies_;  // that something is shown of
  std::optional<StudyId> only_;
  StudyId study_;             // that is copied
  std::size_t number_ = 0;    // of its trial that is looked at next
  std::int64_t ordinal_ = 0;  // of its decision, likewise
};

// Places in a list, by id.
template <typename Id, typename Named>
std::map<Id, std::size_t> PlacesOf(const std::map<Id, Named>& named) {
  std::map<Id, std::size_t> places;
  for (const auto& [id, unused] : named) places.emplace(id, places.size());
  return places;
}

struct Lanes {
  Heading heading;
  Time now;
  std::optional<TimeColumns> window;
  std::map<NodeId, LaneNode> nodes;
  std::map<NodeId, std::string> names;  // of all nodes that ever were
  NodeHistory history;
};

// The window that is asked for, with as many columns as the pool's slots allow.
absl::StatusOr<TimeColumns> WindowOf(const LanesWanted& wanted, const View& view) {
  const TunerState& state = view.core.state();
  Time from = view.now;
  for (const auto& [id, study] : state.studies) {
    if (!wanted.study || *wanted.study == id) from = std::min(from, study.created);
  }
  if (wanted.from) from = TimeFromSeconds(*wanted.from);
  Time to = wanted.to ? TimeFromSeconds(*wanted.to) : view.now;
  if (!wanted.to && to <= from) to = After(from, 1);
  if (from >= to) {
    return absl::InvalidArgumentError(absl::StrCat(
        "from ", SecondsOf(from), ": needs to be before ", SecondsOf(to), ", which \"to\" is"));
  }
  const std::int64_t slots = std::max(1, view.core.SlotsTotal());
  const auto columns =
      std::clamp<std::int64_t>(kMaxCells / slots, 1, static_cast<std::int64_t>(wanted.width));
  return TimeColumns(from, to, static_cast<int>(columns));
}

void CopyNodes(const View& view, Lanes& lanes) {
  for (const NodeView& node : view.core.Nodes()) {
    lanes.nodes[node.id] = {node.name, node.slots, node.gpu_type, node.connected};
  }
  lanes.history.Copy(view, *lanes.window);
}

// Those that are not here any more, whose slots are known by what was held of them.
void AddFormerNodes(const std::vector<Lane>& spans, Lanes& lanes) {
  std::set<NodeId> here;
  for (const auto& [id, node] : lanes.nodes) here.insert(id);
  const auto add = [&](NodeId id, int slots) {
    if (here.contains(id)) return;
    LaneNode& node = lanes.nodes[id];
    const auto name = lanes.names.find(id);
    if (name != lanes.names.end()) node.name = name->second;
    node.slots = std::max(node.slots, slots);
  };
  for (const Lane& span : spans) add(span.slot.node, span.slot.index + 1);
  for (const NodeHistory::Mark& mark : lanes.history.marks()) add(mark.node, 0);
}

// ---- as JSON

void PutSpans(JsonText& json, const std::vector<Lane>& spans,
              const std::map<NodeId, std::size_t>& nodes,
              const std::map<StudyId, std::size_t>& studies) {
  const auto column = [&](std::string_view key, const auto& put) {
    json.Key(key);
    json.Array(spans, put);
  };
  json.Key("spans");
  json.Object([&] {
    column("node", [&](const Lane& span) { json.Value(nodes.at(span.slot.node)); });
    column("slot", [&](const Lane& span) { json.Value(span.slot.index); });
    column("from", [&](const Lane& span) { json.Value(span.from); });
    column("to", [&](const Lane& span) { json.Value(span.to); });
    column("trial_id", [&](const Lane& span) { json.Value(span.trial.value); });
    column("trial", [&](const Lane& span) { json.Value(span.number); });
    column("study", [&](const Lane& span) { json.Value(studies.at(span.study)); });
    column("count", [&](const Lane& span) { json.Value(span.count); });
  });
}

void PutMark(JsonText& json, const NodeHistory::Mark& mark,
             const std::map<NodeId, std::size_t>& nodes) {
  json.Object([&] {
    json.Member("at", mark.at);
    json.Member("kind", mark.lost ? "node_lost" : "node_back");
    for (const char* key : {"trial_id", "trial", "study"}) json.Member(key, std::optional<int>());
    json.Member("node", nodes.at(mark.node));
    json.Member("reason", Shortened(mark.why, kMaxReason));
    json.Member("count", 1);
  });
}

void PutMarks(JsonText& json, const std::vector<Mark>& marks,
              const std::vector<NodeHistory::Mark>& of_nodes,
              const std::map<NodeId, std::size_t>& nodes,
              const std::map<StudyId, std::size_t>& studies) {
  json.Key("marks");
  json.Array([&] {
    for (const NodeHistory::Mark& mark : of_nodes) PutMark(json, mark, nodes);
    for (const Mark& mark : marks) {
      json.Object([&] {
        json.Member("at", mark.at);
        json.Member("kind", mark.kind);
        json.Member("trial_id", mark.trial.value);
        json.Member("trial", mark.number);
        json.Member("study", studies.at(mark.study));
        const auto node = nodes.find(mark.node);
        json.Key("node");
        node == nodes.end() ? json.Null() : json.Value(node->second);
        json.Member("reason", mark.reason);
        json.Member("count", mark.count);
      });
    }
  });
}

void PutUse(JsonText& json, const SlotUse& use, const NodeHistory& history) {
  const int columns = use.columns().columns();
  json.Key("use");
  json.Object([&] {
    json.Key("at");
    json.Array([&] {
      for (int i = 0; i < columns; ++i) json.Value(SecondsOf(use.columns().Begin(i)));
    });
    json.Values("held", use.Mean());
    json.Values("slots", history.Slots(use.columns()));
  });
}

std::string ToJson(const Lanes& lanes, const LaneCopies& copies, const std::vector<Lane>& spans) {
  const auto nodes = PlacesOf(lanes.nodes);
  const auto studies = PlacesOf(copies.studies());
  JsonText json;
  json.Object([&] {
    PutHeading(json, lanes.heading);
    json.Member("now", lanes.now);
    json.Member("from", SecondsOf(lanes.window->from()));
    json.Member("to", SecondsOf(lanes.window->to()));
    json.Key("nodes");
    json.Array(lanes.nodes, [&json](const auto& entry) {
      const LaneNode& node = entry.second;
      json.Object([&] {
        json.Member("name", node.name);
        json.Member("slots", node.slots);
        json.Member("gpu_type", node.gpu_type);
        json.Member("up", node.up);
      });
    });
    PutSpans(json, spans, nodes, studies);
    json.Key("studies");
    json.Array(copies.studies(), [&json](const auto& study) {
      json.Object([&] {
        json.Member("id", study.first.value);
        json.Member("name", study.second);
      });
    });
    PutMarks(json, copies.Marks(), lanes.history.marks(), nodes, studies);
    PutUse(json, copies.use(), lanes.history);
  });
  return json.Take();
}

}  // namespace

absl::StatusOr<std::string> LanesJson(const Source& source, const LanesWanted& wanted) {
  Lanes lanes;
  absl::Status status = absl::OkStatus();
  ESPALIER_RETURN_IF_ERROR(source.tuner.Read([&](const View& view) {
    const TunerState& state = view.core.state();
    if (wanted.study && !state.studies.contains(*wanted.study)) {
      status = NoStudy(*wanted.study);
      return;
    }
    absl::StatusOr<TimeColumns> window = WindowOf(wanted, view);
    status = window.status();
    if (!window.ok()) return;
    lanes.window = *window;
    lanes.heading = HeadingOf(source);
    lanes.now = view.now;
    lanes.names = state.nodes;
    CopyNodes(view, lanes);
  }));
  if (!status.ok()) return status;
  LaneCopies copies(*lanes.window, wanted.study);
  ESPALIER_RETURN_IF_ERROR(ReadInSlices(
      source.tuner, [&](const View& view, Slice& slice) { return copies.GoOn(view, slice); }));
  lanes.history.Make(*lanes.window);
  const std::vector<Lane> spans = copies.spans().Sorted();
  AddFormerNodes(spans, lanes);
  return ToJson(lanes, copies, spans);
}

}  // namespace espalier::view
