#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "allocator/simulator/timeline.h"
#include "tuner/core/promise/reliability.h"
#include "tuner/simulator/virtual_pool.h"

namespace espalier {

// What became of one simulated study. Times are seconds from its start; slots count while a process
// of a trial holds them.
struct StudyFigures {
  bool ended = false;               // false: virtual time was over first
  double finish_s = 0;              // when it ended, or when virtual time was over
  std::optional<double> best;       // final value of its best trial
  std::int64_t best_trial = -1;     // its number
  std::optional<double> target_s;   // when the first trial reported the target or better
  double slot_seconds = 0;          // held
  double slot_use = 0;              // of the pool's slot-seconds until the end, 0 to 1
  double node_seconds = 0;          // that nodes were there, with their start where an engine's
  double node_price = 0;            // of that, in the currency of their price
  int most_nodes = 0;               // at a time
  double slot_seconds_on_best = 0;  // held by the best trial
  int resizes = 0;                  // regroups to another number of replicas
  int pauses = 0;                   // trials that gave up all their slots and stayed alive
  int trials = 0;
  int complete = 0;
  int pruned = 0;
  int failed = 0;
  int unfinished = 0;  // when virtual time was over
  std::int64_t core_steps = 0;
};

// The most seconds that a time of a simulation may have, some 30 years.
inline constexpr double kMostSimulated_s = 1e9;

struct StudySimulationOptions {
  VirtualPoolOptions pool;
  double until_s = 30 * 24 * 3600.0;  // of virtual time
  std::optional<double> target;       // what target_s means (none: the study's); the study goes on
};

struct StudySimulation {
  TunerState state;  // the record, with the parameters that trials ran with
  StudyFigures figures;
  // How reliable the promises were that trials had after their reports, against what the load would
  // have had them end with: whether that is among the study's best k.
  Reliability promise;
  Time end;
};

// Runs one study on virtual time with the production core, pruner and policy. InvalidArgument names
// what is wrong with the study or the pool. Pure: the same arguments give the same bytes.
absl::StatusOr<StudySimulation> SimulateStudy(Workload& load, const StudySpec& spec,
                                              const StudySimulationOptions& options);

// Rows are the study's trials by number, decisions its decisions, figures the above.
Timeline TimelineOf(const StudySimulation& simulation);

}  // namespace espalier
