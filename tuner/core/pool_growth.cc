// How many nodes the engine keeps: asked for and released as the rule of the pool's size says. None
// of it is stored: after a restart the agents that come back tell what there is.

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/pool/job_check.h"
#include "tuner/base/check.h"
#include "tuner/core/core_impl.h"

namespace espalier {

namespace {

constexpr std::string_view kEngineNode = "pool-";

// By its name, which is all that a restarted service knows of a node.
bool IsEngineNode(std::string_view name) {
  if (!name.starts_with(kEngineNode)) return false;
  name.remove_prefix(kEngineNode.size());
  std::int64_t number = 0;
  return absl::SimpleAtoi(absl::string_view(name.data(), name.size()), &number) && number > 0;
}

double StartPatience_s(const NodeTemplate& node) {
  return kNodeStartPatience * node.start_s + kNodeStartLeast_s;
}

}  // namespace

// After a division of slots: the rule sees what that has left to wish.
void Core::Impl::SizePool() {
  if (!size_rule_) {
    auto rule = MakePoolSizeRule(options_.pool_size->rule.name, options_.pool_size->rule.options);
    ESPALIER_CHECK(rule.ok(), "whoever starts a core checks the rule of its pool's size");
    size_rule_ = *std::move(rule);
    // Nodes of a time before a restart come back by themselves, within their lease.
    const bool had_some = std::any_of(turn_.state().nodes.begin(), turn_.state().nodes.end(),
                                      [](const auto& known) { return IsEngineNode(known.second); });
    size_next_ = had_some ? After(turn_.now(), options_.lease_s) : turn_.now();
  }
  GiveUpMissingNodes();
  ReleaseEmptyNodes();
  if (*size_next_ > turn_.now()) return;
  size_next_ = After(turn_.now(), kPoolSizeInterval_s);
  const PoolSizeRequest request = DescribePoolSize();
  PoolSizeDecision decision = size_rule_->Decide(request);
  AddNodesForClients(decision);
  ResizePool(request, decision);
  ReleaseEmptyNodes();
}

// Grows at once. Shrinks only when the pool has been too large for a while, and to the most that
// was wanted meanwhile: a node that is released too soon has to be started anew.
void Core::Impl::ResizePool(const PoolSizeRequest& request, const PoolSizeDecision& decision) {
  const int have = request.nodes + request.pending;
  if (decision.nodes >= have) too_large_since_.reset();
  if (decision.nodes > have) {
    RecordPoolSize(have, decision.nodes,
                   absl::StrCat("pool grows from ", have, " to ", decision.reason));
    GrowPool(decision.nodes - have);
  }
  if (decision.nodes >= have) return;
  if (!too_large_since_) too_large_since_ = turn_.now();
  if (*too_large_since_ == turn_.now() || decision.nodes >= most_wanted_.nodes)
    most_wanted_ = decision;
  const double patience_s = std::max(kShrinkPatience_s, options_.pool_size->node.start_s);
  if (SecondsBetween(*too_large_since_, turn_.now()) < patience_s) return;
  RecordPoolSize(have, most_wanted_.nodes,
                 absl::StrCat("pool shrinks from ", have, " to ", most_wanted_.reason));
  ShrinkPool(have - most_wanted_.nodes);
  too_large_since_.reset();
}

// A pool without a running study tells the one that was submitted last.
void Core::Impl::RecordPoolSize(int from, int to, const std::string& reason) {
  std::set<StudyId> readers = pool_.studies;
  if (readers.empty() && !turn_.state().studies.empty())
    readers = {turn_.state().studies.rbegin()->first};
  const int slots = options_.pool_size->node.slots;
  for (const StudyId id : readers) {
    turn_.Decide(id, -1, DecisionKind::kPool, from * slots, to * slots, reason);
  }
}

PoolSizeRequest Core::Impl::DescribePoolSize() {
  const NodeTemplate& node = options_.pool_size->node;
  int nodes = 0;
  for (const auto& [id, known] : pool_.nodes) {
    nodes += IsEngineNode(known.name) && !known.draining ? 1 : 0;
  }
  const int most_slots =
      std::max({1, pool_.SlotsTotal(), SlotsOfOtherNodes() + node.max_nodes * node.slots});
  sized_pool_ = MakePool(most_slots);
  for (NodeCapacity& known : sized_pool_.nodes) known.slots = pool_.nodes.at(known.id).slots;
  for (const JobRefusal& refusal : RefuseBadJobs(sized_pool_)) {
    RecordRefusal(turn_.TrialAt(refusal.trial), refusal.reason);
  }
  PoolSizeRequest request{sized_pool_, {}, node, nodes, static_cast<int>(asked_nodes_.size())};
  for (const StudyId id : pool_.studies) {
    const Study& study = turn_.StudyAt(id);
    if (PluginsOf(study).too_late) continue;
    const StudyDemand demand = DemandOf(study, most_slots);
    if (demand.configurations > 0) request.demand.emplace(id, demand);
  }
  DescribeWork(request);
  return request;
}

int Core::Impl::SlotsOfOtherNodes() const {
  int slots = 0;
  for (const auto& [id, node] : pool_.nodes) slots += IsEngineNode(node.name) ? 0 : node.slots;
  return slots;
}

// The rule knows of the tuner's own trials only: what clients hold and wait for comes on top.
void Core::Impl::AddNodesForClients(PoolSizeDecision& decision) const {
  int slots = -SlotsOfOtherNodes();
  for (const auto& [id, own] : client_slots_) slots += own.wanted;
  if (slots <= 0) return;
  const NodeTemplate& node = options_.pool_size->node;
  const int added = (slots + node.slots - 1) / node.slots;
  decision.nodes = std::min(node.max_nodes, decision.nodes + added);
  decision.reason =
      absl::StrCat(decision.nodes, decision.nodes == 1 ? " node: " : " nodes: ", added,
                   " for slots of clients; the tuner's trials want ", decision.reason);
}

void Core::Impl::GrowPool(int nodes) {
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
  const Time gives_up = After(turn_.now(), StartPatience_s(options_.pool_size->node));
  for (std::int64_t number = 1; nodes > 0; ++number) {
    const std::string name = absl::StrCat(std::string(kEngineNode), number);
    if (taken.contains(name) || !asked_nodes_.emplace(name, gives_up).second) continue;
    turn_.Request({true, name});
    --nodes;
  }
}

// Those first that have not come yet, then those that hold least.
void Core::Impl::ShrinkPool(int nodes) {
  for (; nodes > 0 && !asked_nodes_.empty(); --nodes) {
    const auto last = std::prev(asked_nodes_.end());
    turn_.Request({false, last->first});
    asked_nodes_.erase(last);
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

void Core::Impl::GiveUpMissingNodes() {
  for (auto it = asked_nodes_.begin(); it != asked_nodes_.end();) {
    if (it->second > turn_.now()) {
      ++it;
      continue;
    }
    const int had = static_cast<int>(asked_nodes_.size());
    RecordPoolSize(had, had - 1,
                   absl::StrFormat("node %s was asked for and did not come within %.0f s: given up",
                                   it->first, StartPatience_s(options_.pool_size->node)));
    turn_.Request({false, it->first});
    it = asked_nodes_.erase(it);
    size_next_ = turn_.now();
  }
}

// The engine is told again where a node is still here a while later: the word may be lost.
void Core::Impl::ReleaseEmptyNodes() {
  for (auto& [id, node] : pool_.nodes) {
    if (!node.draining || !IsEngineNode(node.name)) continue;
    if (node.released && SecondsBetween(*node.released, turn_.now()) < kReleaseAgain_s) continue;
    if (pool_.SlotsHeldOn(id) > 0) continue;
    node.released = turn_.now();
    turn_.Request({false, node.name});
  }
}

// Looks again only while something may have changed by itself.
std::optional<Time> Core::Impl::NextPoolSize() const {
  std::optional<Time> next;
  const auto consider = [&next](Time t) { next = next ? std::min(*next, t) : t; };
  for (const auto& [name, gives_up] : asked_nodes_) consider(gives_up);
  int nodes = static_cast<int>(asked_nodes_.size());
  for (const auto& [id, node] : pool_.nodes) {
    if (!IsEngineNode(node.name)) continue;
    nodes += node.draining ? 0 : 1;
    if (node.released) consider(After(*node.released, kReleaseAgain_s));
  }
  if (!pool_.studies.empty() || !client_slots_.empty() ||
      nodes != options_.pool_size->node.min_nodes) {
    consider(size_next_.value_or(turn_.now()));
  }
  return next;
}

}  // namespace espalier
