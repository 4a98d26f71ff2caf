#include "tuner/core/pool_size/pool_sizer.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tuner/base/check.h"

namespace espalier {

namespace {

constexpr double kPoolSizeInterval_s = 5;  // between looks at the pool's size
constexpr double kShrinkPatience_s = 30;   // that a pool is too large before it shrinks
constexpr double kNodeStartPatience = 3;   // start-up times, and this much more, after
constexpr double kNodeStartLeast_s = 30;   // which a node that was asked for is given up
constexpr double kReleaseAgain_s = 30;     // until the engine is told again

// Within which a node starts that does not have to wait for one to be free.
double StartPatience_s(const NodeTemplate& node) {
  return kNodeStartPatience * node.start_s + kNodeStartLeast_s;
}

double ArrivalPatience_s(const NodeTemplate& node) { return StartPatience_s(node) + node.queue_s; }

}  // namespace

PoolSizer::PoolSizer(Turn& turn, PoolState& pool, const PoolSizeOptions& options, double lease_s)
    : turn_(turn), pool_(pool), node_(options.node), lease_s_(lease_s) {
  auto rule = MakePoolSizeRule(options.rule.name, options.rule.options);
  ESPALIER_CHECK(rule.ok(), "whoever starts a core checks the rule of its pool's size");
  rule_ = *std::move(rule);
}

bool PoolSizer::Due() {
  if (!next_) {
    // Nodes of a time before a restart come back by themselves, within their lease.
    const std::map<NodeId, std::string>& known = turn_.state().nodes;
    const bool had_some = std::any_of(known.begin(), known.end(),
                                      [](const auto& node) { return IsEngineNode(node.second); });
    next_ = had_some ? After(turn_.now(), lease_s_) : turn_.now();
  }
  GiveUpMissing();
  ReleaseEmpty();
  return *next_ <= turn_.now();
}

void PoolSizer::Resize(PoolSizeRequest request, int client_slots) {
  next_ = After(turn_.now(), kPoolSizeInterval_s);
  request.node = node_;
  request.nodes = NodesThere();
  request.pending = static_cast<int>(asked_.size());
  PoolSizeDecision decision = rule_->Decide(request);
  AddNodesForClients(client_slots, decision);
  Follow(request.nodes + request.pending, decision);
  ReleaseEmpty();
}

// How many nodes of the engine there are, without draining ones.
int PoolSizer::NodesThere() const {
  int nodes = 0;
  for (const auto& [id, node] : pool_.nodes) {
    nodes += IsEngineNode(node.name) && !node.draining ? 1 : 0;
  }
  return nodes;
}

void PoolSizer::AddNodesForClients(int client_slots, PoolSizeDecision& decision) const {
  const int slots = client_slots - SlotsOfOtherNodes(pool_);
  if (slots <= 0) return;
  const int added = (slots + node_.slots - 1) / node_.slots;
  decision.nodes = std::min(node_.max_nodes, decision.nodes + added);
  decision.reason =
      absl::StrCat(decision.nodes, decision.nodes == 1 ? " node: " : " nodes: ", added,
                   " for slots of clients; the tuner's trials want ", decision.reason);
}

void PoolSizer::Follow(int have, const PoolSizeDecision& decision) {
  const Time now = turn_.now();
  if (decision.nodes >= have) too_large_since_.reset();
  if (decision.nodes > have) {
    Record(have, decision.nodes, absl::StrCat("pool grows from ", have, " to ", decision.reason));
    Grow(decision.nodes - have);
  }
  if (decision.nodes >= have) return;
  if (!too_large_since_) too_large_since_ = now;
  if (*too_large_since_ == now || decision.nodes >= most_wanted_.nodes) most_wanted_ = decision;
  const double patience_s = std::max(kShrinkPatience_s, node_.start_s);
  if (SecondsBetween(*too_large_since_, now) < patience_s) return;
  Record(have, most_wanted_.nodes,
         absl::StrCat("pool shrinks from ", have, " to ", most_wanted_.reason));
  Shrink(have - most_wanted_.nodes);
  too_large_since_.reset();
}

// A pool without a running study tells the one that was submitted last.
void PoolSizer::Record(int from, int to, const std::string& reason) {
  std::set<StudyId> readers = pool_.studies;
  const std::map<StudyId, Study>& all = turn_.state().studies;
  if (readers.empty() && !all.empty()) readers = {all.rbegin()->first};
  for (const StudyId id : readers) {
    turn_.Decide(id, -1, DecisionKind::kPool, from * node_.slots, to * node_.slots, reason);
  }
}

void PoolSizer::Grow(int nodes) {
  // Nodes that were to go, and are not gone, stay first.
  for (auto& [id, node] : pool_.nodes) {
    if (nodes == 0) return;
    if (!node.releasing || node.released) continue;
    node.releasing = false;
    pool_.UpdateDrain(node, "");
    turn_.Wake();
    if (!node.draining) --nodes;
  }
  std::set<std::string> taken;
  for (const auto& [id, node] : pool_.nodes) taken.insert(node.name);
  for (const auto& [id, ends] : turn_.state().drained) taken.insert(turn_.state().nodes.at(id));
  const Asked asked{.again = After(turn_.now(), StartPatience_s(node_)),
                    .gives_up = After(turn_.now(), ArrivalPatience_s(node_))};
  for (std::int64_t number = 1; nodes > 0; ++number) {
    const std::string name = absl::StrCat(std::string(kEngineNode), number);
    if (taken.contains(name) || !asked_.emplace(name, asked).second) continue;
    // One that came and is lost may still be there, for the engine: it is not meant.
    if (came_.contains(name)) Release(name);
    turn_.Request({true, name});
    --nodes;
  }
}

void PoolSizer::Release(const std::string& name) {
  came_.erase(name);
  turn_.Request({false, name});
}

// Those first that have not come yet, then those that hold least.
void PoolSizer::Shrink(int nodes) {
  for (; nodes > 0 && !asked_.empty(); --nodes) {
    const auto last = std::prev(asked_.end());
    Release(last->first);
    asked_.erase(last);
  }
  std::vector<std::pair<int, NodeId>> held;
  for (const auto& [id, node] : pool_.nodes) {
    if (!IsEngineNode(node.name) || node.draining) continue;
    held.emplace_back(pool_.SlotsHeldOn(id), id);
  }
  std::sort(held.begin(), held.end());
  for (std::size_t i = 0; i < held.size() && i < static_cast<std::size_t>(nodes); ++i) {
    Node& node = pool_.nodes.at(held[i].second);
    node.releasing = true;
    pool_.UpdateDrain(node, "the pool shrinks");
  }
  turn_.Wake();
}

// The engine is told again of a node that has not come, for its machine may have ended before.
void PoolSizer::GiveUpMissing() {
  for (auto it = asked_.begin(); it != asked_.end();) {
    if (it->second.gives_up > turn_.now()) {
      if (it->second.again <= turn_.now()) {
        it->second.again = After(turn_.now(), StartPatience_s(node_));
        turn_.Request({true, it->first});
      }
      ++it;
      continue;
    }
    const int had = static_cast<int>(asked_.size());
    Record(had, had - 1,
           absl::StrFormat("node %s was asked for and did not come within %.0f s: given up",
                           it->first, ArrivalPatience_s(node_)));
    Release(it->first);
    it = asked_.erase(it);
    next_ = turn_.now();
  }
}

// The engine is told again where a node is still here a while later: the word may be lost.
void PoolSizer::ReleaseEmpty() {
  for (auto& [id, node] : pool_.nodes) {
    if (!node.draining || !IsEngineNode(node.name)) continue;
    if (node.released && SecondsBetween(*node.released, turn_.now()) < kReleaseAgain_s) continue;
    if (pool_.SlotsHeldOn(id) > 0) continue;
    node.released = turn_.now();
    Release(node.name);
  }
}

std::optional<Time> PoolSizer::Next(bool clients_ask) const {
  std::optional<Time> next;
  const auto consider = [&next](Time t) { next = next ? std::min(*next, t) : t; };
  for (const auto& [name, asked] : asked_) consider(std::min(asked.again, asked.gives_up));
  for (const auto& [id, node] : pool_.nodes) {
    if (IsEngineNode(node.name) && node.released) consider(After(*node.released, kReleaseAgain_s));
  }
  const int nodes = static_cast<int>(asked_.size()) + NodesThere();
  if (!pool_.studies.empty() || clients_ask || nodes != node_.min_nodes) {
    consider(next_.value_or(turn_.now()));
  }
  return next;
}

}  // namespace espalier
