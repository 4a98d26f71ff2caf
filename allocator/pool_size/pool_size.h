#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/pool/pool.h"
#include "allocator/pool/study_shares.h"
#include "base/plugin.h"

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
  std::string name{};               // empty: the only one that the pool has
  bool spot = false;                // its nodes may be taken away at short notice
  double preemptions_per_hour = 0;  // of each of them, about
};

struct GoodputMemo;

// Where a pool has several templates, a rule is shown one order in which their nodes could be
// added, and says how many of them there should be. It is asked about several orders; see
// node_choice.h.
struct NodeOrder {
  struct Step {
    int slots = 1;
    double price_per_hour = 0;  // reckoned for the speed of its slots and what it loses
    double start_s = 0;
  };
  std::vector<Step> steps{};
  int slots_there = 0;    // of the engine's nodes that are there, in this order or not
  double slot_price = 0;  // an hour, of the dearest template
  std::shared_ptr<GoodputMemo> known{};  // from the other orders
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
  // With several templates. Then `node` says how many nodes there may be in all, and `nodes` and
  // `pending` how many of the first steps are there or were asked for.
  NodeOrder order{};
};

struct PoolSizeDecision {
  int nodes = 0;       // wanted, the pending ones counted in
  std::string reason;  // in words and figures
  // If there are decisions on several orders of nodes, the one with the smallest loss is followed;
  // among equals, that on the first template alone.
  double loss = 0;
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
