#pragma once

#include <string>
#include <utility>
#include <vector>

namespace espalier {

// What a simulation leaves behind, whatever was simulated: what held which slots when, what was
// decided and why, and the figures. Times are seconds from the simulation's start.

// A span in which one row held the same number of slots.
struct TimelineSpan {
  double from_s = 0;
  double to_s = 0;
  int slots = 0;
  int nodes = 0;
};

// One trial or job.
struct TimelineRow {
  std::string name;
  double submitted_s = 0;
  double ended_s = -1;  // -1: had not ended
  std::string outcome;  // e.g. "complete", "pruned"
  int resizes = 0;      // after its first placement
  std::vector<TimelineSpan> spans;
};

struct TimelineDecision {
  double at_s = 0;
  std::string row;  // the row it concerns; empty: all of them
  int from_slots = 0;
  int to_slots = 0;
  std::string reason;
  std::string kind{};  // of a study's decision, e.g. "grow"; else empty
};

struct Timeline {
  int slots = 0;  // of the pool, at its largest
  std::vector<TimelineRow> rows;
  std::vector<TimelineDecision> decisions;
  std::vector<std::pair<std::string, double>> figures;  // named with their unit, in this order
};

}  // namespace espalier
