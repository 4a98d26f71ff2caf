#include "tuner/cli/views/simulation_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/json/parse_json.h"
#include "tuner/cli/views/text.h"

namespace espalier {
namespace {

// Names say their unit: seconds end in _s, shares in _share or _use.
std::string FigureText(const std::string& name, double value) {
  const auto ends_in = [&name](std::string_view end) { return name.ends_with(end); };
  if (std::isnan(value)) return "-";
  if (ends_in("_use") || ends_in("_share")) return fmt::format("{:.1f} %", 100 * value);
  if (ends_in("_s")) return FormatDuration(value);
  if (value == std::floor(value) && std::abs(value) < 1e15) return fmt::format("{:.0f}", value);
  return FormatValue(value);
}

std::string FigureName(std::string name) {
  for (const std::string_view unit : {"_s", "_share"}) {
    if (name.ends_with(unit)) name.resize(name.size() - unit.size());
  }
  for (char& c : name) c = c == '_' ? ' ' : c;
  return name;
}

nlohmann::ordered_json Number(double value) {
  if (std::isfinite(value)) return value;
  return nullptr;
}

nlohmann::ordered_json RowJson(const TimelineRow& row) {
  nlohmann::ordered_json json = {{"name", row.name},
                                 {"submitted_s", row.submitted_s},
                                 {"ended_s", row.ended_s < 0 ? nullptr : Number(row.ended_s)},
                                 {"outcome", row.outcome},
                                 {"resizes", row.resizes}};
  json["spans"] = nlohmann::ordered_json::array();
  for (const TimelineSpan& span : row.spans) {
    json["spans"].push_back({{"from_s", span.from_s},
                             {"to_s", span.to_s},
                             {"slots", span.slots},
                             {"nodes", span.nodes}});
  }
  return json;
}

nlohmann::ordered_json RunJson(const SimulationRun& run) {
  nlohmann::ordered_json json = {{"policy", run.policy}, {"slots", run.timeline.slots}};
  for (const auto& [name, value] : run.timeline.figures) json["figures"][name] = Number(value);
  json["rows"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < run.timeline.rows.size(); ++i) {
    nlohmann::ordered_json row = RowJson(run.timeline.rows[i]);
    if (i < run.row_json.size()) {
      row.update(ParseJson<nlohmann::ordered_json>(run.row_json[i], kMaxRecordDepth));
    }
    json["rows"].push_back(std::move(row));
  }
  json["decisions"] = nlohmann::ordered_json::array();
  for (const TimelineDecision& d : run.timeline.decisions) {
    json["decisions"].push_back({{"at_s", d.at_s},
                                 {"row", d.row},
                                 {"from_slots", d.from_slots},
                                 {"to_slots", d.to_slots},
                                 {"reason", d.reason}});
    if (!d.kind.empty()) json["decisions"].back()["kind"] = d.kind;
  }
  if (!run.remarks.empty()) json["remarks"] = run.remarks;
  return json;
}

}  // namespace

std::string SimulationTable(const std::vector<SimulationRun>& runs) {
  std::vector<std::vector<std::string>> table;
  if (runs.size() == 1) {
    table.push_back({"policy", runs.front().policy});
    for (const auto& [name, value] : runs.front().timeline.figures) {
      table.push_back({FigureName(name), FigureText(name, value)});
    }
  } else if (!runs.empty()) {
    table.assign(runs.size() + 1, {});
    table.front().push_back("policy");
    for (std::size_t r = 0; r < runs.size(); ++r) table[r + 1].push_back(runs[r].policy);
    for (std::size_t f = 0; f < runs.front().timeline.figures.size(); ++f) {
      const std::string& name = runs.front().timeline.figures[f].first;
      // What is nothing under every policy only makes the table wide.
      const auto is_zero = [f](const SimulationRun& run) {
        return run.timeline.figures[f].second == 0;
      };
      if (name != "finish_s" && std::all_of(runs.begin(), runs.end(), is_zero)) continue;
      table.front().push_back(FigureName(name));
      for (std::size_t r = 0; r < runs.size(); ++r) {
        table[r + 1].push_back(FigureText(name, runs[r].timeline.figures[f].second));
      }
    }
  }
  std::string text;
  for (const std::string& line : Columns(table)) text += line + "\n";
  return text;
}

std::string SimulationDecisions(const std::vector<SimulationRun>& runs) {
  std::string text;
  for (const SimulationRun& run : runs) {
    text += fmt::format("{}# policy {}\n", text.empty() ? "" : "\n", run.policy);
    for (const TimelineDecision& d : run.timeline.decisions) {
      text += fmt::format("{:12.3f} s  {:<10}  {:>3} -> {:<3}  {}\n", d.at_s,
                          d.row.empty() ? "-" : d.row, d.from_slots, d.to_slots, d.reason);
    }
  }
  return text;
}

std::string SimulationJson(const std::string& title, const std::vector<SimulationRun>& runs,
                           const RecordedFigures& recorded) {
  nlohmann::ordered_json json = {{"simulated", title}};
  for (const auto& [name, value] : recorded) json["recorded"][name] = Number(value);
  json["runs"] = nlohmann::ordered_json::array();
  for (const SimulationRun& run : runs) json["runs"].push_back(RunJson(run));
  // What is no UTF-8 (in a program's parameters, say) is replaced, not refused.
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace espalier
