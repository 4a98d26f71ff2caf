#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "allocator/policies/policy.h"
#include "allocator/simulator/timeline.h"

namespace espalier {

class Application;

// One job of a recorded workload.
struct ClusterJob {
  std::string name;
  double submitted_s = 0;
  std::shared_ptr<const Application> application;
  int requested_slots = 1;           // what its user tuned it for
  std::int64_t requested_batch = 0;  // likewise, over all replicas
};

// A workload and the machines on which it runs: `nodes` of one kind.
struct ClusterLoad {
  std::string name;
  std::vector<ClusterJob> jobs;  // in order of submission
  int nodes = 16;
  int slots_per_node = 4;
};

enum class BatchRule {
  kAdaptive,   // the job chooses the batch with the most goodput on the slots it has
  kRequested,  // the batch its user asked for, on however many slots
};

// The order in which a job's replicas are laid over its nodes, on which recorded step times depend.
enum class RingOrder { kByNode, kMostFirst };

struct ClusterOptions {
  // The time between decisions; with `on_events`, the longest time without one. A whole number of
  // seconds unless `on_events`.
  double interval_s = 60;
  // Decisions at once after an arrival, a completion, the end of an epoch and the first step times
  // of a new shape, instead of on the clock alone.
  bool on_events = false;
  double least_gap_s =
      1;  // between decisions on events: what happens within it is decided together
  double first_profile_s =
      1;                      // on events: what a new shape trains before its step time is reported
  double resize_cost_s = 30;  // in which a resized job does not train; also what policies are told
  BatchRule batch = BatchRule::kAdaptive;
  RingOrder ring = RingOrder::kByNode;
  double longest_s = 30 * 86400.0;  // a load that is not done by then is an error
};

// The options under which a policy's published figures came about: Optimus and Tiresias were given
// jobs tuned by their users, everything else adapts.
ClusterOptions PublishedOptions(std::string_view policy);

// Runs a workload of recorded training jobs under a policy, on virtual time: how long steps take
// and what they are worth is interpolated from measurements; what the policy sees is what a job
// would have measured and fitted by then. With the default options it follows the simulator of the
// Pollux paper (OSDI 2021, section 5.3) to the second. Pure and deterministic: the same load, the
// same options and a policy in the same state give the same timeline. To measure a policy's own
// time, wrap it.
//
// InvalidArgument names a job or option that is not possible; Internal a policy that gave out more
// slots than there are; DeadlineExceeded a load that takes longer than longest_s.
absl::StatusOr<Timeline> SimulateCluster(const ClusterLoad& load, Policy& policy,
                                         const ClusterOptions& options);

// The figures of a timeline as numbers; Timeline::figures of a cluster says the same in words.
// Quantiles are interpolated between the two nearest jobs.
struct ClusterFigures {
  double average_s = 0;  // completion time: from submission to the end
  double p50_s = 0;
  double p99_s = 0;
  double makespan_s = 0;  // the last end, from the simulation's start
  double mean_resizes = 0;
  double slot_use = 0;  // of all slots until the last end
};
ClusterFigures FiguresOf(const Timeline& timeline);

}  // namespace espalier
