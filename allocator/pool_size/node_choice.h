#pragma once

#include <string>
#include <vector>

#include "allocator/pool_size/pool_size.h"

namespace espalier {

// A template of the engine's nodes, and how many of it there are.
struct EngineNodes {
  NodeTemplate node;
  int nodes = 0;       // without draining ones: those that are there,
  int pending = 0;     // and those that were asked for
  bool rests = false;  // none is started now: those that were asked for last did not come
};

struct NodeChoice {
  std::vector<int> nodes;  // wanted of each template, the pending ones counted in
  std::string reason;
};

// How many nodes of each template a pool should have. With one template it is what the rule decides
// of it. With several the rule decides on several orders in which nodes could be added, each
// template alone and that by which the most work is had for the price at each step, and the
// decision that loses least is followed; so it costs no more than the best that one template alone
// could do. `request` lacks what is said of the nodes.
//
// Where no template costs anything, slots count. A node's price is reckoned for its slots' measured
// speed (by GPU type, where the trials' models tell) and for the starts that preemptions cost; a
// node that is there counts at four fifths of it, so that nodes are not exchanged for a little.
// Templates that start more slowly than the work ends are left out.
NodeChoice ChooseNodes(PoolSizeRule& rule, PoolSizeRequest request,
                       const std::vector<EngineNodes>& templates);

}  // namespace espalier
