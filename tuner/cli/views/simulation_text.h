#pragma once

#include <string>
#include <utility>
#include <vector>

#include "allocator/simulator/timeline.h"

namespace espalier {

// One simulation as `tuner simulate` shows it. Pure.
struct SimulationRun {
  std::string policy;  // with its options
  Timeline timeline;
  // Each row's own record, by row: what it ran with and reported, as a JSON object. May be empty.
  std::vector<std::string> row_json;
  std::vector<std::string> remarks{};  // what to know before its figures are believed
};

// What a simulation of a recorded study has beside its runs: the figures of the study itself,
// named as those of a run. Empty: it is no recorded one.
using RecordedFigures = std::vector<std::pair<std::string, double>>;

// The figures: one run as a column of names and values, several as a table with a row each.
std::string SimulationTable(const std::vector<SimulationRun>& runs);

// Each decision with its time and reason in a line, each run under its heading.
std::string SimulationDecisions(const std::vector<SimulationRun>& runs);

// Everything: figures, rows with their slots over time, decisions. `title` says what was simulated.
std::string SimulationJson(const std::string& title, const std::vector<SimulationRun>& runs,
                           const RecordedFigures& recorded = {});

}  // namespace espalier
