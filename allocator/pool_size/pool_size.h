#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "allocator/policies/policy.h"
#include "allocator/pool/study_shares.h"

namespace espalier {

// What a node of the engine is, and how many there may be.
struct NodeTemplate {
  int slots = 1;
  std::string gpu_type{};
  double price_per_hour = 0;  // 0: only the slots themselves count
  double start_s = 60;        // from asking for one to its first replica
  int min_nodes = 0;
  int max_nodes = 1;
};

// What a rule sees. The pool's draining nodes are on their way out and count for nothing.
struct PoolSizeRequest {
  const Pool& pool;
  std::map<StudyId, StudyDemand> demand;  // configurations that could still be started
  NodeTemplate node;
  int nodes = 0;          // of the engine, without draining ones: those that are there,
  int pending = 0;        // and those that were asked for
  double deadline_s = 0;  // until the work should be done; 0: none
  // Of all configurations not started yet, on one slot; 0: unknown, infinite: there is no end.
  double work_left_s = 0;
};

struct PoolSizeDecision {
  int nodes = 0;       // wanted, the pending ones counted in
  std::string reason;  // in words and figures
};

// How many nodes a pool should have. Pure: no clock, no engine, no hidden randomness. What is
// wanted lies between the template's min and max. A pool without trials and without configurations
// wants the minimum; one with either, enough for something to run, if the maximum allows. One
// owner.
class PoolSizeRule {
 public:
  virtual ~PoolSizeRule() = default;
  virtual PoolSizeDecision Decide(const PoolSizeRequest& request) = 0;
};

// Rules, by name:
//  utility_price: grows while the next node's slots add at least `min_utility` of what they would
//   add if used in full (Or, Zhang, Freedman, MLSys 2020: throughput scaling efficiency against
//   price), weighed by the share of the trials' time that is left after its start-up. Where growth
//   comes in lumps, so does the pool's: several nodes at once. Shrinks when its last node adds less
//   than half of that.
//  utility_band: keeps the mean speedup for each slot between `low` and `high`; outside of the band
//   it takes the size nearest to its middle (as Pollux's autoscaling does).
//  least_cost: the smallest pool whose estimated end meets the deadline with `margin` of the time
//  to
//   spare (RubberBand's question), and the smallest of all until it is known how much work there
//   is; without a deadline or an end, the largest whose cost a unit of work is within `slack` of
//   the least.
// InvalidArgument names what is unknown, and what is known.
absl::StatusOr<std::unique_ptr<PoolSizeRule>> MakePoolSizeRule(std::string_view name,
                                                               const Options& options);
std::vector<std::string> PoolSizeRuleNames();

// Goodput, in speedups over one slot, that the trials and configurations would have on so many
// nodes of the template beside the pool's other nodes.
class GoodputBySize {
 public:
  explicit GoodputBySize(const PoolSizeRequest& request) : request_(&request) {}
  double At(int nodes);
  // Slots of so many nodes, and of those that are not the engine's.
  int Slots(int nodes) const;

 private:
  const PoolSizeRequest* request_;
  SpeedupCache speedups_;
  std::map<int, double> known_;
};

}  // namespace espalier
