#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "allocator/pool/pool.h"

namespace espalier {

// The slots of a pool while a policy that does not care where a job runs hands them out: whole
// placements are kept or made anew, on the nodes with the most free slots first, and by id among
// equals. Nothing new is placed on a draining node, a job gets slots of one GPU type and island,
// and unless `share_spanned` a node carries at most one job that spans nodes.
class SlotLedger {
 public:
  SlotLedger(const Pool& pool, bool share_spanned);

  // The slots of all nodes that are not draining, taken or not.
  int usable() const { return usable_; }
  // Whether the slots that a job holds all exist and are not on draining nodes; a job that is
  // joining may stay on draining nodes.
  bool MayKeep(const Job& job) const;
  void Take(const Placement& placement);
  // None if there is no legal place for that many.
  std::optional<Placement> Place(int slots) const;
  // What happened to a node of the job since it was placed; empty if nothing did.
  std::string Loss(const Job& job) const;

 private:
  struct Node {
    std::string name;
    SlotKind kind;
    int free = 0;
    bool draining = false;
    int spanning = 0;       // jobs that are on this node and on others too
    bool overfull = false;  // fewer slots than the jobs of the pool hold
  };

  bool MaySpan(const Node& node) const { return share_spanned_ || node.spanning == 0; }
  std::optional<Placement> PlaceOn(int slots, const SlotKind& kind) const;

  std::map<NodeId, Node> nodes_;
  bool share_spanned_;
  int usable_ = 0;
};

int TotalSlots(const Placement& placement);
// The jobs of a pool in order of submission.
std::vector<const Job*> InOrder(const Pool& pool);

}  // namespace espalier
