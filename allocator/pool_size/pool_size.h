#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "allocator/pool/pool.h"
#include "allocator/pool/study_shares.h"
#include "tuner/base/plugin.h"

namespace espalier {

// What a node of the engine is, and how many there may be.
struct NodeTemplate {
  int slots = 1;
  std::string gpu_type{};
  double price_per_hour = 0;  // 0: only the slots themselves count
  double start_s = 60;        // from asking for one to its first replica, where one is free
  double queue_s = 0;         // that it may have to wait until one is free
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
  // Seconds that all configurations not started yet would take on one slot; 0: unknown, infinite:
  // there is no end.
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

// All there are; a row of it is the last function of its source file.
const PluginTable<PoolSizeRule>& PoolSizeRules();

// InvalidArgument names an unknown rule or option, or a value out of range, and what is known.
absl::StatusOr<std::unique_ptr<PoolSizeRule>> MakePoolSizeRule(std::string_view name,
                                                               const Options& options);

}  // namespace espalier
