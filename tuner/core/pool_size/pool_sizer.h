#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "allocator/pool_size/node_choice.h"
#include "tuner/core/pool/engine_nodes.h"
#include "tuner/core/pool/pool_state.h"
#include "tuner/core/state/step.h"
#include "tuner/core/state/turn.h"

namespace espalier {

// How many nodes the engine keeps, of each template: asks for them and releases them as the rule of
// the pool's size says. Grows at once. Shrinks only when there have been too many for a while, and
// to the most that were wanted meanwhile: a node that is released too soon has to be started anew.
// A template whose nodes do not come is left out for a while, where there are others. Nodes of a
// template that the pool has no more are released. None of it is stored: after a restart the agents
// that come back tell what there is.
class PoolSizer {
 public:
  // Requires a rule that exists. After a restart it waits `lease_s` for the engine's nodes to come
  // back before it asks for others.
  PoolSizer(Turn& turn, PoolState& pool, const PoolSizeOptions& options, double lease_s);

  // An agent of that name has said Hello.
  void NodeCame(const std::string& name);

  // Gives nodes up that did not come, and releases those that are drained and empty. True: it is
  // time for Resize.
  bool Due();
  // Grows or shrinks as the rule says. The request lacks nothing but what the sizer knows: the
  // node, and how many there are. The rule knows of the tuner's own trials only; `client_slots` are
  // held by clients or asked for, and come on top.
  void Resize(PoolSizeRequest request, int client_slots);

  // When to look again, if something may have changed by itself by then. `clients_ask`: some hold
  // slots or wait for them.
  std::optional<Time> Next(bool clients_ask) const;

 private:
  struct Wanted {
    int nodes = 0;
    std::string reason;
  };
  struct OfTemplate {
    NodeTemplate node;
    std::optional<Time> too_large_since{};
    Wanted most_wanted{};  // since then: what it shrinks to
    std::optional<Time> rests_until{};
  };

  OfTemplate* Find(const std::string& node_name);
  bool IsOf(const NodeTemplate& node, const std::string& node_name) const;
  int NodesThere(const NodeTemplate& node) const;
  int NodesAsked(const NodeTemplate& node) const;
  std::vector<EngineNodes> NodesNow() const;
  void AddNodesForClients(int client_slots, NodeChoice& choice) const;
  void Follow(OfTemplate& of, int have, const Wanted& wanted);
  double ShrinkPatience_s() const;
  void Record(const NodeTemplate& node, int from, int to, const std::string& reason);
  void Release(const std::string& name);
  void ReleaseUnknown();
  void GiveUpMissing();
  void Grow(const NodeTemplate& node, int nodes);
  void Shrink(const NodeTemplate& node, int nodes);
  void ReleaseEmpty();

  Turn& turn_;
  PoolState& pool_;
  std::vector<OfTemplate> templates_;
  double lease_s_;
  std::unique_ptr<PoolSizeRule> rule_;
  // A node that has not come.
  struct Asked {
    Time again;     // when the engine is told again
    Time gives_up;  // on it
  };

  std::map<std::string, Asked> asked_;
  std::set<std::string> came_;  // that the engine has not been told to release since
  bool unknown_came_ = false;   // a node of a template that the pool has no more
  std::optional<Time> next_;    // look of the rule; none: before the first
};

}  // namespace espalier
