#pragma once

#include <map>
#include <string>

#include "allocator/pool/study_shares.h"
#include "allocator/pool_size/pool_size.h"

namespace espalier {

// What is known of one request: goodput by how many of the engine's nodes have how many slots.
struct GoodputMemo {
  SpeedupCache speedups;
  std::map<std::map<int, int>, double> known;
};

// Slots of the pool's nodes that are not the engine's.
int OtherSlots(const PoolSizeRequest& request);
// Goodput, in speedups over one slot, that the trials and configurations would have on such nodes
// of the engine (how many of them have so many slots) beside the pool's other ones.
double GoodputOn(const PoolSizeRequest& request, const std::map<int, int>& nodes_by_slots,
                 GoodputMemo& memo);

// The same by the number of nodes: of the template, or of the first in the request's order.
class GoodputBySize {
 public:
  explicit GoodputBySize(const PoolSizeRequest& request)
      : request_(&request),
        memo_(request.order.known ? request.order.known : std::make_shared<GoodputMemo>()) {}
  double At(int nodes);
  // Slots of so many nodes, and of those that are not the engine's.
  int Slots(int nodes) const;
  // What so many nodes cost an hour; with one template, their slots and the others'.
  double Cost(int nodes) const;
  // The longest start of those that more nodes than there are would add.
  double Start_s(int nodes, int more) const;

 private:
  template <typename See>
  void ForFirst(int nodes, See see) const;

  const PoolSizeRequest* request_;
  std::shared_ptr<GoodputMemo> memo_;
};

// Seconds for which the trials will go on, approximately: the longest remaining time of any of
// them. Infinite if it is unknown, or if configurations wait.
double TimeLeft(const PoolSizeRequest& request);

// A pool without trials and configurations, and what every rule decides for it.
bool Idle(const PoolSizeRequest& request);
PoolSizeDecision IdleDecision(const PoolSizeRequest& request);

// The smallest pool on which something runs; the least there may be if nothing ever does.
int LeastThatRuns(const PoolSizeRequest& request, GoodputBySize& goodput);

// "1 node", "2 nodes".
std::string Nodes(int n);

}  // namespace espalier
