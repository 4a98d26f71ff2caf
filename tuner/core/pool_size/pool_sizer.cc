#include "tuner/core/pool_size/pool_sizer.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"

namespace espalier {

namespace {

constexpr double kPoolSizeInterval_s = 5;  // between looks at the pool's size
constexpr double kShrinkPatience_s = 15;  // that a pool is too large before it shrinks: three looks
constexpr double kNodeStartPatience = 3;  // start-up times, and this much more, after
constexpr double kNodeStartLeast_s = 30;  // which a node that was asked for is given up
constexpr double kReleaseAgain_s = 30;    // until the engine is told again
constexpr double kTemplateRest_s = 300;   // that a template is left out, at least

// Within which a node starts that does not have to wait for one to be free.
double StartPatience_s(const NodeTemplate& node) {
  return kNodeStartPatience * node.start_s + kNodeStartLeast_s;
}

double ArrivalPatience_s(const NodeTemplate& node) { return StartPatience_s(node) + node.queue_s; }

// "pool grows from 0 to 3 nodes: why", or "pool grows from 0 to 2 of spot, all in all 3 nodes:
// why".
std::string ChangeText(std::string_view verb, const NodeTemplate& node, int from, int to,
                       const std::string& reason) {
  const std::string begin = absl::StrCat("pool ", std::string(verb), " from ", from, " to ");
  return node.name.empty() ? begin + reason
                           : absl::StrCat(begin, to, " of ", node.name, ", all in all ", reason);
}

}  // namespace

PoolSizer::PoolSizer(Turn& turn, PoolState& pool, const PoolSizeOptions& options, double lease_s)
    : turn_(turn), pool_(pool), lease_s_(lease_s) {
  for (const NodeTemplate& node : options.templates) templates_.push_back({.node = node});
  auto rule = MakePoolSizeRule(options.rule.name, options.rule.options);
  ESPALIER_CHECK(rule.ok(), "whoever starts a core checks the rule of its pool's size");
  rule_ = *std::move(rule);
}

void PoolSizer::NodeCame(const std::string& name) {
  came_.insert(name);
  if (IsEngineNode(name)) turn_.TellJoined(name);
  if (Find(name) == nullptr) unknown_came_ = IsEngineNode(name) || unknown_came_;
  if (asked_.erase(name) == 0) return;
  if (OfTemplate* of = Find(name)) of->rests_until.reset();
}

bool PoolSizer::IsOf(const NodeTemplate& node, const std::string& node_name) const {
  return TemplateOf(node_name) == node.name;
}

PoolSizer::OfTemplate* PoolSizer::Find(const std::string& node_name) {
  for (OfTemplate& of : templates_) {
    if (IsOf(of.node, node_name)) return &of;
  }
  return nullptr;
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
  ReleaseUnknown();
  ReleaseEmpty();
  return *next_ <= turn_.now();
}

void PoolSizer::Resize(PoolSizeRequest request, int client_slots) {
  next_ = After(turn_.now(), kPoolSizeInterval_s);
  const std::vector<EngineNodes> now = NodesNow();
  NodeChoice choice = ChooseNodes(*rule_, std::move(request), now);
  AddNodesForClients(client_slots, choice);
  for (std::size_t t = 0; t < templates_.size(); ++t) {
    Follow(templates_[t], now[t].nodes + now[t].pending, {choice.nodes[t], choice.reason});
  }
  ReleaseEmpty();
}

std::vector<EngineNodes> PoolSizer::NodesNow() const {
  std::vector<EngineNodes> now;
  for (const OfTemplate& of : templates_) {
    now.push_back({.node = of.node,
                   .nodes = NodesThere(of.node),
                   .pending = NodesAsked(of.node),
                   .rests = of.rests_until && *of.rests_until > turn_.now()});
  }
  return now;
}

// How many nodes of the template there are, without draining ones.
int PoolSizer::NodesThere(const NodeTemplate& node) const {
  return static_cast<int>(std::count_if(
      pool_.nodes.begin(), pool_.nodes.end(),
      [&](const auto& there) { return IsOf(node, there.second.name) && !there.second.draining; }));
}

int PoolSizer::NodesAsked(const NodeTemplate& node) const {
  return static_cast<int>(std::count_if(
      asked_.begin(), asked_.end(), [&](const auto& asked) { return IsOf(node, asked.first); }));
}

// Of the first templates that have room, those at rest only where the others have none.
void PoolSizer::AddNodesForClients(int client_slots, NodeChoice& choice) const {
  int slots = client_slots - SlotsOfOtherNodes(pool_);
  if (slots <= 0) return;
  const auto nodes_for = [&slots](const NodeTemplate& node) {
    return slots <= 0 ? 0 : (slots + node.slots - 1) / node.slots;
  };
  int added = 0;
  int all = 0;
  for (const bool at_rest : {false, true}) {
    for (std::size_t t = 0; t < templates_.size(); ++t) {
      const OfTemplate& of = templates_[t];
      if ((of.rests_until && *of.rests_until > turn_.now()) != at_rest) continue;
      const int more =
          std::min(nodes_for(of.node), std::max(0, of.node.max_nodes - choice.nodes[t]));
      slots -= more * of.node.slots;
      added += more;
      choice.nodes[t] += more;
      all += choice.nodes[t];
    }
  }
  added += nodes_for(templates_.front().node);  // beyond the most that there may be
  choice.reason = absl::StrCat(all, all == 1 ? " node: " : " nodes: ", added,
                               " for slots of clients; the tuner's trials want ", choice.reason);
}

// An idle node is kept for as long as it would take to start it anew; where templates take one
// another's place, the new nodes come first.
double PoolSizer::ShrinkPatience_s() const {
  double patience_s = kShrinkPatience_s;
  for (const OfTemplate& of : templates_) patience_s = std::max(patience_s, of.node.start_s);
  return patience_s;
}

void PoolSizer::Follow(OfTemplate& of, int have, const Wanted& wanted) {
  const Time now = turn_.now();
  if (wanted.nodes >= have) of.too_large_since.reset();
  if (wanted.nodes > have) {
    Record(of.node, have, wanted.nodes,
           ChangeText("grows", of.node, have, wanted.nodes, wanted.reason));
    Grow(of.node, wanted.nodes - have);
  }
  if (wanted.nodes >= have) return;
  if (!of.too_large_since) of.too_large_since = now;
  if (*of.too_large_since == now || wanted.nodes >= of.most_wanted.nodes) of.most_wanted = wanted;
  if (SecondsBetween(*of.too_large_since, now) < ShrinkPatience_s()) return;
  Record(of.node, have, of.most_wanted.nodes,
         ChangeText("shrinks", of.node, have, of.most_wanted.nodes, of.most_wanted.reason));
  Shrink(of.node, have - of.most_wanted.nodes);
  of.too_large_since.reset();
}

// A pool without a running study tells the one that was submitted last.
void PoolSizer::Record(const NodeTemplate& node, int from, int to, const std::string& reason) {
  std::set<StudyId> readers = pool_.studies;
  const std::map<StudyId, Study>& all = turn_.state().studies;
  if (readers.empty() && !all.empty()) readers = {all.rbegin()->first};
  for (const StudyId id : readers) {
    turn_.Decide(id, -1, DecisionKind::kPool, from * node.slots, to * node.slots, reason);
  }
}

void PoolSizer::Grow(const NodeTemplate& of, int nodes) {
  // Nodes that were to go, and are not gone, stay first.
  for (auto& [id, node] : pool_.nodes) {
    if (nodes == 0) return;
    if (!node.releasing || node.released || !IsOf(of, node.name)) continue;
    node.releasing = false;
    pool_.UpdateDrain(node, "");
    turn_.Wake();
    if (!node.draining) --nodes;
  }
  std::set<std::string> taken;
  for (const auto& [id, node] : pool_.nodes) taken.insert(node.name);
  for (const auto& [id, ends] : turn_.state().drained) taken.insert(turn_.state().nodes.at(id));
  const Asked asked{.again = After(turn_.now(), StartPatience_s(of)),
                    .gives_up = After(turn_.now(), ArrivalPatience_s(of))};
  for (std::int64_t number = 1; nodes > 0; ++number) {
    const std::string name = EngineNodeName(of.name, number);
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
void PoolSizer::Shrink(const NodeTemplate& of, int nodes) {
  for (auto it = asked_.end(); nodes > 0 && it != asked_.begin();) {
    --it;
    if (!IsOf(of, it->first)) continue;
    Release(it->first);
    it = asked_.erase(it);
    --nodes;
  }
  std::vector<std::pair<int, NodeId>> held;
  for (const auto& [id, node] : pool_.nodes) {
    if (!IsOf(of, node.name) || node.draining) continue;
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

// Of templates that the service was started with before, and is no more.
void PoolSizer::ReleaseUnknown() {
  if (!std::exchange(unknown_came_, false)) return;
  for (auto& [id, node] : pool_.nodes) {
    if (node.releasing || !IsEngineNode(node.name) || Find(node.name) != nullptr) continue;
    node.releasing = true;
    pool_.UpdateDrain(node, "the pool has its template no more");
    turn_.Wake();
  }
}

// The engine is told again of a node that has not come, for its machine may have ended before.
void PoolSizer::GiveUpMissing() {
  for (auto it = asked_.begin(); it != asked_.end();) {
    OfTemplate& of = *Find(it->first);
    if (it->second.gives_up > turn_.now()) {
      if (it->second.again <= turn_.now()) {
        it->second.again = After(turn_.now(), StartPatience_s(of.node));
        turn_.Request({true, it->first});
      }
      ++it;
      continue;
    }
    const int had = NodesAsked(of.node);
    Record(of.node, had, had - 1,
           absl::StrFormat("node %s was asked for and did not come within %.0f s: given up",
                           it->first, ArrivalPatience_s(of.node)));
    of.rests_until = After(turn_.now(), std::max(kTemplateRest_s, ArrivalPatience_s(of.node)));
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
  const bool at_least = std::all_of(templates_.begin(), templates_.end(), [this](const auto& of) {
    return NodesAsked(of.node) + NodesThere(of.node) == of.node.min_nodes;
  });
  if (!pool_.studies.empty() || clients_ask || !at_least) {
    consider(next_.value_or(turn_.now()));
  }
  return next;
}

}  // namespace espalier
