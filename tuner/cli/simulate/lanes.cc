#include "tuner/cli/simulate/lanes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

namespace espalier {
namespace {

using LaneValue = nlohmann::ordered_json;

constexpr int kMostColumns = 1200;
constexpr int kMostCells = 20000;  // columns of all slots
constexpr int kMarkColumns = 400;
constexpr int kUseColumns = 400;

LaneValue FiniteOrNull(double value) {
  return std::isfinite(value) ? LaneValue(value) : LaneValue(nullptr);
}

struct LaneSpan {
  Slot slot;
  double from_s = 0;
  double to_s = 0;
  const Trial* trial = nullptr;
  int count = 1;
};

struct LaneMark {
  double at_s = 0;
  const Decision* decision = nullptr;
  int count = 1;
};

// Times of a simulation, cut into columns.
struct LaneColumns {
  double end_s = 1;
  int count = 1;

  double width_s() const { return end_s / count; }
  int Of(double at_s) const {
    return static_cast<int>(std::clamp(at_s / width_s(), 0.0, static_cast<double>(count - 1)));
  }
};

// How one simulation is drawn.
class LaneDrawing {
 public:
  LaneDrawing(const StudySimulation& simulation, const RecordedLoad* recorded, int slots_per_node)
      : state_(simulation.state),
        study_(state_.studies.begin()->second),
        recorded_(recorded),
        end_s_(std::max(1e-3, SecondsBetween(VirtualPool::kStart, simulation.end))) {
    FindNodes(slots_per_node);
    FindSpans();
    FindMarks();
  }

  LaneValue ToJson() const {
    const StudyId study = recorded_ != nullptr ? recorded_->study_id() : study_.id;
    LaneValue json = {{"now", end_s_}, {"from", 0}, {"to", end_s_}, {"nodes", LaneValue::array()}};
    for (const auto& [id, slots] : slots_) {
      json["nodes"].push_back(
          {{"name", state_.nodes.at(id)}, {"slots", slots}, {"gpu_type", ""}, {"up", true}});
    }
    json["spans"] = SpansJson();
    json["studies"] = LaneValue::array();
    json["studies"].push_back({{"id", study.value}, {"name", study_.spec.name}});
    json["marks"] = MarksJson();
    json["use"] = UseJson();
    return json;
  }

 private:
  double SinceStart(Time at) const { return SecondsBetween(VirtualPool::kStart, at); }
  double EndOf(const SlotSpan& span) const {
    return span.to == Time{} ? end_s_ : std::min(end_s_, SinceStart(span.to));
  }

  void FindNodes(int slots_per_node) {
    for (const auto& [id, name] : state_.nodes) {
      if (slots_per_node > 0) slots_[id] = slots_per_node;
    }
    for (const auto& [id, trial] : state_.trials) {
      for (const SlotSpan& span : trial.spans) {
        for (const Slot& slot : span.slots) {
          slots_[slot.node] = std::max(slots_[slot.node], slot.index + 1);
        }
      }
    }
    for (const auto& [id, slots] : slots_) slots_of_all_ += slots;
  }

  void FindSpans() {
    const LaneColumns columns{end_s_,
                              std::clamp(kMostCells / std::max(1, slots_of_all_), 1, kMostColumns)};
    std::map<std::tuple<Slot, int>, LaneSpan> short_ones;  // by the column in which they begin
    for (const auto& [id, trial] : state_.trials) {
      for (const SlotSpan& held : trial.spans) {
        for (const Slot& slot : held.slots) {
          const LaneSpan span{
              .slot = slot, .from_s = SinceStart(held.from), .to_s = EndOf(held), .trial = &trial};
          if (span.to_s - span.from_s >= columns.width_s()) {
            spans_.push_back(span);
            continue;
          }
          const auto [at, added] = short_ones.try_emplace({slot, columns.Of(span.from_s)}, span);
          if (added) continue;
          at->second.from_s = std::min(at->second.from_s, span.from_s);
          at->second.to_s = std::max(at->second.to_s, span.to_s);
          ++at->second.count;
        }
      }
    }
    for (const auto& [place, span] : short_ones) spans_.push_back(span);
    std::sort(spans_.begin(), spans_.end(), [](const LaneSpan& a, const LaneSpan& b) {
      return std::tie(a.slot, a.from_s) < std::tie(b.slot, b.from_s);
    });
  }

  void FindMarks() {
    const LaneColumns columns{end_s_, kMarkColumns};
    std::map<std::pair<int, DecisionKind>, LaneMark> marks;
    for (const Decision& decision : study_.decisions) {
      if (decision.trial_number < 0) continue;
      const double at_s = SinceStart(decision.at);
      const auto [at, added] = marks.try_emplace({columns.Of(at_s), decision.kind},
                                                 LaneMark{.at_s = at_s, .decision = &decision});
      if (!added) ++at->second.count;
    }
    for (const auto& [place, mark] : marks) marks_.push_back(mark);
    std::stable_sort(marks_.begin(), marks_.end(),
                     [](const LaneMark& a, const LaneMark& b) { return a.at_s < b.at_s; });
  }

  RecordedLoad::Origin OriginOf(const Trial& trial) const {
    if (recorded_ != nullptr) return recorded_->OriginOf(trial);
    return {trial.id, trial.number};
  }

  LaneValue PlaceOf(NodeId node) const {
    const auto found = slots_.find(node);
    if (found == slots_.end()) return nullptr;
    return std::distance(slots_.begin(), found);
  }

  LaneValue SpansJson() const {
    LaneValue json;
    for (const char* key : {"node", "slot", "from", "to", "trial_id", "trial", "study", "count"}) {
      json[key] = LaneValue::array();
    }
    for (const LaneSpan& span : spans_) {
      const RecordedLoad::Origin origin = OriginOf(*span.trial);
      json["node"].push_back(PlaceOf(span.slot.node));
      json["slot"].push_back(span.slot.index);
      json["from"].push_back(span.from_s);
      json["to"].push_back(span.to_s);
      json["trial_id"].push_back(origin.id.value);
      json["trial"].push_back(origin.number);
      json["study"].push_back(0);
      json["count"].push_back(span.count);
    }
    return json;
  }

  // The node of the trial's first slot at that moment.
  LaneValue NodeAt(const Trial& trial, Time at) const {
    for (const SlotSpan& span : trial.spans) {
      const bool held = span.from <= at && (span.to == Time{} || span.to >= at);
      if (held && !span.slots.empty()) return PlaceOf(span.slots.front().node);
    }
    return nullptr;
  }

  LaneValue MarksJson() const {
    LaneValue json = LaneValue::array();
    for (const LaneMark& mark : marks_) {
      const auto number = static_cast<std::size_t>(mark.decision->trial_number);
      const Trial& trial = state_.trials.at(study_.trials.at(number));
      const RecordedLoad::Origin origin = OriginOf(trial);
      json.push_back({{"at", mark.at_s},
                      {"kind", ToString(mark.decision->kind)},
                      {"trial_id", origin.id.value},
                      {"trial", origin.number},
                      {"study", 0},
                      {"node", NodeAt(trial, mark.decision->at)},
                      {"reason", mark.decision->reason},
                      {"count", mark.count}});
    }
    return json;
  }

  // Slots held in each column, on the mean of its time.
  LaneValue UseJson() const {
    const LaneColumns columns{end_s_, kUseColumns};
    std::vector<double> held(kUseColumns, 0);
    for (const auto& [id, trial] : state_.trials) {
      for (const SlotSpan& span : trial.spans) {
        const double from_s = SinceStart(span.from);
        const double to_s = EndOf(span);
        for (int i = columns.Of(from_s); i <= columns.Of(to_s); ++i) {
          const double part_s =
              std::min(to_s, (i + 1) * columns.width_s()) - std::max(from_s, i * columns.width_s());
          held[static_cast<std::size_t>(i)] +=
              std::max(0.0, part_s) / columns.width_s() * static_cast<double>(span.slots.size());
        }
      }
    }
    LaneValue at = LaneValue::array();
    for (int i = 0; i < kUseColumns; ++i) at.push_back(i * columns.width_s());
    return {{"at", at}, {"held", held}, {"slots", std::vector<int>(kUseColumns, slots_of_all_)}};
  }

  const TunerState& state_;
  const Study& study_;
  const RecordedLoad* recorded_;
  const double end_s_;
  std::map<NodeId, int> slots_;
  int slots_of_all_ = 0;
  std::vector<LaneSpan> spans_;
  std::vector<LaneMark> marks_;
};

LaneValue FiguresOf(const SimulationRun& run) {
  LaneValue json = {{"policy", run.policy},        {"pruner", ""},
                    {"slots", run.timeline.slots}, {"figures", LaneValue::object()},
                    {"remarks", run.remarks},      {"lanes", nullptr}};
  for (const auto& [name, value] : run.timeline.figures) {
    json["figures"][name] = FiniteOrNull(value);
  }
  return json;
}

}  // namespace

std::string FigureRunJson(const SimulationRun& run) { return FiguresOf(run).dump(); }

std::string LaneRunJson(const SimulationRun& run, const StudySpec& spec,
                        const StudySimulation& simulation, const RecordedLoad* recorded,
                        int slots_per_node) {
  LaneValue json = FiguresOf(run);
  json["pruner"] = TextOf(spec.pruner);
  json["lanes"] = LaneDrawing(simulation, recorded, slots_per_node).ToJson();
  return json.dump(-1, ' ', false, LaneValue::error_handler_t::replace);
}

std::string LanesJson(const std::vector<std::string>& runs, const RecordedFigures& recorded) {
  LaneValue figures;
  for (const auto& [name, value] : recorded) figures[name] = FiniteOrNull(value);
  std::string text = "{\"recorded\":" + figures.dump() + ",\"runs\":[";
  for (std::size_t i = 0; i < runs.size(); ++i) text += (i > 0 ? "," : "") + runs[i];
  return text + "]}\n";
}

}  // namespace espalier
