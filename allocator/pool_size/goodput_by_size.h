#pragma once

#include <map>
#include <string>

#include "allocator/pool/study_shares.h"
#include "allocator/pool_size/pool_size.h"

namespace espalier {

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

// A pool without trials and configurations, and what every rule decides for it.
bool Idle(const PoolSizeRequest& request);
PoolSizeDecision IdleDecision(const PoolSizeRequest& request);

// The smallest pool on which something runs; the least there may be if nothing ever does.
int LeastThatRuns(const PoolSizeRequest& request, GoodputBySize& goodput);

// "1 node", "2 nodes".
std::string Nodes(int n);

}  // namespace espalier
