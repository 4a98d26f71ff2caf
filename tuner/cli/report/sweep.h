#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tuner.pb.h"

namespace espalier::report {

// When a trial first reported the target or better.
struct Reached {
  double seconds = 0;       // in which it held slots until then
  double slot_seconds = 0;  // the same, times how many
  std::int64_t step = 0;
  std::int64_t trial_number = 0;
};

// The trials of one scaling rule at one batch size.
struct SweepGroup {
  std::string rule;              // empty: the study has no such parameter
  std::string batch;             // the same
  double batch_size = 0;         // as a number, by which groups are in order
  std::vector<double> values;    // of trials that have one, the best first
  std::vector<Reached> reached;  // the soonest first
  int trials = 0;
  int pruned = 0;
  int failed = 0;
};

// What a study's trials show of batch sizes and scaling rules: its parameters batch_size and
// scaling_rule. Times to one target are what makes batch sizes comparable: a larger one makes
// fewer steps of a quicker epoch.
struct Sweep {
  std::vector<SweepGroup> groups;  // by rule, then by batch size; none: no such parameters
  std::optional<double> target;    // none: no group has reported a number
  bool target_given = false;       // else it is the best value that every group reached
};

// `target` goes before the study's own. `now`: where spans that are still open end.
Sweep SweepOf(const v1::StudyDetails& details, std::optional<double> target, double now);

// Final metric and time to target by rule and batch size; the first row is the heading.
std::vector<std::vector<std::string>> SweepRows(const v1::StudyDetails& details,
                                                const Sweep& sweep);

// The table as lines for a terminal.
std::vector<std::string> SweepLines(const v1::StudyDetails& details, const Sweep& sweep);

}  // namespace espalier::report
