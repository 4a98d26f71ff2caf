#include "allocator/pool/board.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/check.h"

namespace espalier {

namespace {

void AddSlots(Shares& shares, int node, int slots) {
  const auto at = std::lower_bound(shares.begin(), shares.end(), node,
                                   [](const Share& s, int n) { return s.node < n; });
  if (at != shares.end() && at->node == node) {
    at->slots += slots;
  } else {
    shares.insert(at, {node, slots});
  }
}

// "1 slot was free, 2 slots come from trial 7".
std::string Sources(const Holder& holder) {
  std::vector<std::string> parts;
  if (holder.free_slots_taken > 0) {
    parts.push_back(absl::StrCat(SlotsText(holder.free_slots_taken),
                                 holder.free_slots_taken == 1 ? " was free" : " were free"));
  }
  for (const auto& [trial, slots] : holder.slots_from) {
    parts.push_back(
        absl::StrCat(SlotsText(slots), slots == 1 ? " comes" : " come", " from ", trial));
  }
  return absl::StrJoin(parts, ", ");
}

}  // namespace

int TotalSlots(const Shares& shares) {
  return std::accumulate(shares.begin(), shares.end(), 0,
                         [](int sum, const Share& s) { return sum + s.slots; });
}

int SlotsOn(const Shares& shares, int node) {
  for (const Share& share : shares) {
    if (share.node == node) return share.slots;
  }
  return 0;
}

double Weight(const Job& job) {
  return job.promise == job.promise ? std::clamp(job.promise, 0.0, 1.0) : 0.0;
}

void Board::AddNodes(const Pool& pool) {
  std::set<SlotKind> kinds;
  for (const NodeCapacity& node : pool.nodes) kinds.insert(KindOf(node));
  for (const auto& [type, island] : kinds) types_.push_back(type);
  for (const NodeCapacity& node : pool.nodes) {
    const int slots = std::max(0, node.slots);
    nodes_.push_back(
        {.id = node.id,
         .name = NameOf(node),
         .type = static_cast<int>(std::distance(kinds.begin(), kinds.find(KindOf(node)))),
         .draining = node.draining,
         .spot = node.spot,
         .capacity = slots,
         .most_of_one_trial = node.most_of_one_trial > 0 ? node.most_of_one_trial : slots});
  }
  std::sort(nodes_.begin(), nodes_.end(), [](const Node& a, const Node& b) { return a.id < b.id; });
  int most = 0;
  std::vector<int> of_type(types_.size(), 0);
  for (const Node& node : nodes_) {
    most = std::max(most, node.capacity);
    if (node.draining) continue;
    of_type[static_cast<std::size_t>(node.type)] += node.capacity;
    total_capacity_ += node.capacity;
  }
  for (const int slots : of_type) largest_hold_ = std::max(largest_hold_, slots);
  const NodeSet none((nodes_.size() + 63) / 64, 0);
  by_free_.assign(types_.size(), std::vector<NodeSet>(static_cast<std::size_t>(most) + 1, none));
  unspanned_.assign(none.size(), ~std::uint64_t{0});
  free_of_type_.assign(types_.size(), 0);
  for (std::size_t n = 0; n < nodes_.size(); ++n) SetFree(n, nodes_[n].capacity);
}

Board::Board(const Pool& pool, SpeedupCache* cache) {
  AddNodes(pool);
  std::map<NodeId, int> index;
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    ESPALIER_CHECK(index.emplace(nodes_[n].id, static_cast<int>(n)).second,
                   "a node is listed once in a pool");
  }
  std::vector<const Job*> jobs;
  for (const Job& job : pool.jobs) jobs.push_back(&job);
  std::sort(jobs.begin(), jobs.end(), [](const Job* a, const Job* b) {
    return std::tie(a->order, a->id) < std::tie(b->order, b->id);
  });
  holders_.reserve(jobs.size());
  for (const Job* job : jobs) {
    Holder& holder = holders_.emplace_back();
    holder.job = job;
    holder.weight = Weight(*job);
    holder.speedup = cache != nullptr ? cache->CurveOf(*job) : std::make_shared<SpeedupCurve>(*job);
    Shares shares;
    for (const auto& [node, slots] : job->current) {
      const auto at = index.find(node);
      if (slots > 0 && at != index.end()) {
        AddSlots(shares, at->second, slots);
        continue;
      }
      holder.damaged = true;
      holder.lost.push_back(absl::StrCat("node ", node.value, " is gone"));
    }
    held_at_first_.push_back(shares);
    intact_.push_back(!holder.damaged);
    Assign(holders_.size() - 1, std::move(shares));
  }
}

int Board::free_on(std::size_t node) const {
  return nodes_[node].draining ? std::min(0, nodes_[node].free) : nodes_[node].free;
}

int Board::most_for(std::size_t j, std::size_t node) const {
  const Node& at = nodes_[node];
  const Job& job = *holders_[j].job;
  int most = at.capacity;
  if (at.most_of_one_trial < most) {
    most = std::min(most, std::max(at.most_of_one_trial, MinSlots(job)));
  }
  return job.most_on_node > 0 ? std::min(most, job.most_on_node) : most;
}

int Board::largest_hold(std::size_t j) const {
  if (holders_[j].job->most_on_node == 0) return largest_hold_;
  std::vector<int> of_type(types_.size(), 0);
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    if (!nodes_[n].draining) of_type[static_cast<std::size_t>(nodes_[n].type)] += most_for(j, n);
  }
  return of_type.empty() ? 0 : *std::max_element(of_type.begin(), of_type.end());
}

bool Board::MustBeOnOne(std::size_t j, int slots, int type) const {
  if (!holders_[j].job->undivided) return false;
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    if (nodes_[n].type == type && !nodes_[n].draining && most_for(j, n) >= slots) return true;
  }
  return false;
}

int Board::type_of(const Shares& shares) const {
  return shares.empty() ? -1 : nodes_[static_cast<std::size_t>(shares.front().node)].type;
}

void Board::SetFree(std::size_t node, int free) {
  Node& at = nodes_[node];
  const std::uint64_t bit = std::uint64_t{1} << (node % 64);
  auto& sets = by_free_[static_cast<std::size_t>(at.type)];
  const int before = std::max(0, at.free);
  const int after = std::max(0, free);
  at.free = free;
  if (at.draining) return;
  sets[static_cast<std::size_t>(before)][node / 64] &= ~bit;
  sets[static_cast<std::size_t>(after)][node / 64] |= bit;
  free_of_type_[static_cast<std::size_t>(at.type)] += after - before;
  total_free_ += after - before;
}

void Board::SetSpanning(std::size_t node, int holder) {
  nodes_[node].spanning = holder;
  const std::uint64_t bit = std::uint64_t{1} << (node % 64);
  if (holder < 0) {
    unspanned_[node / 64] |= bit;
  } else {
    unspanned_[node / 64] &= ~bit;
  }
}

template <typename Visit>
bool Board::AnyWithFree(int type, int free, Visit visit, const NodeSet* within) const {
  const auto& sets = by_free_[static_cast<std::size_t>(type)];
  if (free < 0 || free >= static_cast<int>(sets.size())) return false;
  const NodeSet& set = sets[static_cast<std::size_t>(free)];
  for (std::size_t word = 0; word < set.size(); ++word) {
    const std::uint64_t here = within == nullptr ? set[word] : set[word] & (*within)[word];
    for (std::uint64_t bits = here; bits != 0; bits &= bits - 1) {
      const auto node = word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
      if (visit(static_cast<int>(node))) return true;
    }
  }
  return false;
}

Move Board::MoveFor(std::size_t j, const Shares& shares) const {
  if (AsShown(j, shares)) return Move::kStay;
  const Shares& shown = held_at_first_[j];
  const bool stays = std::any_of(shown.begin(), shown.end(), [&shares](const Share& s) {
    return std::any_of(shares.begin(), shares.end(),
                       [&s](const Share& t) { return s.node == t.node; });
  });
  return stays || shown.empty() ? Move::kResize : Move::kRelocate;
}

double Board::SpeedupWith(std::size_t j, const Shares& shares) {
  if (shares.empty()) return 0;
  return SpeedupIn(j, static_cast<int>(shares.size()), TotalSlots(shares), type_of(shares));
}

bool Board::MaySpan(std::size_t j, const Node& node) const {
  return node.spanning < 0 || node.spanning == static_cast<int>(j);
}

std::vector<int> Board::TypesFor(std::size_t j) const {
  std::vector<int> order(types_.size());
  std::iota(order.begin(), order.end(), 0);
  if (order.size() == 1 || holders_[j].job->goodput_by_gpu_type.empty()) return order;
  const int slots = MinSlots(*holders_[j].job);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return holders_[j].speedup->At(1, slots, types_[static_cast<std::size_t>(a)]) >
           holders_[j].speedup->At(1, slots, types_[static_cast<std::size_t>(b)]);
  });
  return order;
}

// A trial that starts on one slot gets the emptiest node, to have room to grow around it; one that
// needs several fills the fullest node that has room for it, to leave the others whole. Of equal
// nodes the promising keep off those that may be taken away, and the others keep off the rest.
std::optional<int> Board::OneNodeFor(std::size_t j, int slots, int type) const {
  const int most = static_cast<int>(by_free_[static_cast<std::size_t>(type)].size()) - 1;
  const bool wants_spot = holders_[j].weight < 0.5;
  const bool emptiest = slots == 1;
  for (int step = 0; step <= most - slots; ++step) {
    std::optional<int> best;
    AnyWithFree(type, emptiest ? most - step : slots + step, [&](int node) {
      if (most_for(j, static_cast<std::size_t>(node)) < slots) return false;
      if (!best) best = node;
      if (nodes_[static_cast<std::size_t>(node)].spot != wants_spot) return false;
      best = node;
      return true;
    });
    if (best) return best;
  }
  return std::nullopt;
}

bool Board::Spread(std::size_t j, int slots, int type, Shares& shares) const {
  for (const Share& share : shares) {
    if (!MaySpan(j, nodes_[static_cast<std::size_t>(share.node)])) return false;
  }
  const auto own = [&shares](int node) {
    const auto at = std::lower_bound(shares.begin(), shares.end(), node,
                                     [](const Share& s, int n) { return s.node < n; });
    return at != shares.end() && at->node == node;
  };
  // Only who spans already may find more on nodes that carry a spanning job: itself.
  const NodeSet* within = holders_[j].shares.size() > 1 ? nullptr : &unspanned_;
  const int most = static_cast<int>(by_free_[static_cast<std::size_t>(type)].size()) - 1;
  Shares added;
  // The largest gaps first; the last one is the smallest that holds what is still missing.
  for (int spot = 0; spot < 2 && slots > 0; ++spot) {
    for (int free = most; free > 0 && slots > 0; --free) {
      AnyWithFree(
          type, free,
          [&](int n) {
            const Node& node = nodes_[static_cast<std::size_t>(n)];
            if (node.spot != (spot == 1) || own(n) || !MaySpan(j, node)) return false;
            const int taken = std::min({free, slots, most_for(j, static_cast<std::size_t>(n))});
            if (taken == slots && taken < free && spot == 0) {
              for (int smaller = taken; smaller < free; ++smaller) {
                const bool found = AnyWithFree(
                    type, smaller,
                    [&](int m) {
                      const Node& other = nodes_[static_cast<std::size_t>(m)];
                      if (own(m) || !MaySpan(j, other)) return false;
                      if (most_for(j, static_cast<std::size_t>(m)) < taken) return false;
                      AddSlots(added, m, taken);
                      return true;
                    },
                    within);
                if (!found) continue;
                slots -= taken;
                return true;
              }
            }
            AddSlots(added, n, taken);
            slots -= taken;
            return slots == 0;
          },
          within);
    }
  }
  for (const Share& share : added) AddSlots(shares, share.node, share.slots);
  return slots == 0;
}

std::optional<Shares> Board::Fresh(std::size_t j, int slots, int type) const {
  if (slots > free_of_type(type)) return std::nullopt;
  if (const std::optional<int> node = OneNodeFor(j, slots, type)) return Shares{{*node, slots}};
  Shares shares;
  if (MustBeOnOne(j, slots, type) || !Spread(j, slots, type, shares)) return std::nullopt;
  return shares;
}

std::optional<Shares> Board::Grown(std::size_t j, int slots) const {
  const Holder& holder = holders_[j];
  int wanted = slots - holder.total;
  ESPALIER_CHECK(wanted > 0, "growing means more slots");
  if (wanted > total_free_) return std::nullopt;
  if (holder.total == 0) {
    for (const int type : TypesFor(j)) {
      if (auto fresh = Fresh(j, slots, type)) return fresh;
    }
    return std::nullopt;
  }
  Shares shares = holder.shares;
  for (Share& share : shares) {
    const auto n = static_cast<std::size_t>(share.node);
    const int room = std::min(free_on(n), most_for(j, n) - share.slots);
    const int taken = std::clamp(room, 0, wanted);
    share.slots += taken;
    wanted -= taken;
  }
  const int type = type_of(shares);
  if ((wanted > 0 || shares.size() > 1) && MustBeOnOne(j, slots, type)) return std::nullopt;
  if (wanted == 0) return shares;
  if (wanted > free_of_type(type) || !Spread(j, wanted, type, shares)) return std::nullopt;
  return shares;
}

Shares Board::Shrunk(std::size_t j, int slots) const {
  Shares shares = holders_[j].shares;
  int surplus = holders_[j].total - slots;
  while (surplus > 0) {
    // Draining nodes first; else the largest share that may go as a whole; else part of the least.
    const auto rank = [&](const Share& s) {
      const bool drains = nodes_[static_cast<std::size_t>(s.node)].draining;
      const bool whole = s.slots <= surplus;
      return std::tuple(!drains, !whole, whole ? -s.slots : s.slots, -s.node);
    };
    const auto first =
        std::min_element(shares.begin(), shares.end(),
                         [&](const Share& a, const Share& b) { return rank(a) < rank(b); });
    const int taken = std::min(first->slots, surplus);
    first->slots -= taken;
    surplus -= taken;
    if (first->slots == 0) shares.erase(first);
  }
  return shares;
}

void Board::Assign(std::size_t j, Shares shares) {
  Holder& holder = holders_[j];
  for (const Share& share : holder.shares) {
    const auto n = static_cast<std::size_t>(share.node);
    SetFree(n, nodes_[n].free + share.slots);
    if (nodes_[n].spanning == static_cast<int>(j)) SetSpanning(n, -1);
  }
  holder.shares = std::move(shares);
  holder.total = TotalSlots(holder.shares);
  for (const Share& share : holder.shares) {
    const auto n = static_cast<std::size_t>(share.node);
    SetFree(n, nodes_[n].free - share.slots);
    if (holder.shares.size() > 1 && nodes_[n].spanning < 0) SetSpanning(n, static_cast<int>(j));
  }
}

Placement Board::PlacementOf(const Holder& holder) const {
  Placement placement;
  for (const Share& share : holder.shares) {
    placement[nodes_[static_cast<std::size_t>(share.node)].id] = share.slots;
  }
  return placement;
}

std::string Board::Reason(std::size_t j) {
  const Holder& holder = holders_[j];
  const Job& job = *holder.job;
  int before = 0;
  for (const auto& [node, slots] : job.current) before += slots;
  const std::string lost = absl::StrJoin(holder.lost, ", ");
  const std::string sources = Sources(holder);
  if (before == 0) {
    return absl::StrFormat("starts on %s: promise %.2f, %s", SlotsText(holder.total), job.promise,
                           sources);
  }
  if (holder.total == 0) return absl::StrCat("pauses: ", lost, ", no room for its minimum");
  if (holder.total < before) {
    return absl::StrFormat("shrinks %d -> %d: promise %.2f, %s", before, holder.total, job.promise,
                           lost);
  }
  if (holder.total == before) {
    return absl::StrCat("moves: ", lost, lost.empty() || sources.empty() ? "" : ", ", sources);
  }
  const int type = type_of(held_at_first_[j].empty() ? holder.shares : held_at_first_[j]);
  const double then = holder.speedup->At(static_cast<int>(job.current.size()), before,
                                         types_[static_cast<std::size_t>(type)]);
  const double now = SpeedupNow(j);
  return absl::StrFormat("grows %d -> %d: promise %.2f, speedup %.2f -> %.2f (%+.2f weighted), %s",
                         before, holder.total, job.promise, then, now, job.promise * (now - then),
                         sources);
}

std::vector<AllocationDecision> Board::Decisions() {
  std::vector<AllocationDecision> decisions;
  for (std::size_t j = 0; j < holders_.size(); ++j) {
    Placement placement = PlacementOf(holders_[j]);
    if (placement == holders_[j].job->current) continue;
    decisions.push_back({.trial = holders_[j].job->id,
                         .placement = std::move(placement),
                         .reason = Reason(j),
                         .figures = holders_[j].figures});
  }
  return decisions;
}

}  // namespace espalier
