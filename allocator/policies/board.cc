#include "allocator/policies/board.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tuner/base/check.h"

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

std::string Slots(int n) { return n == 1 ? "1 slot" : absl::StrCat(n, " slots"); }

// "1 slot was free, 2 slots come from trial 7".
std::string Sources(const Seat& seat) {
  std::vector<std::string> parts;
  if (seat.free_slots_taken > 0) {
    parts.push_back(absl::StrCat(Slots(seat.free_slots_taken),
                                 seat.free_slots_taken == 1 ? " was free" : " were free"));
  }
  for (const auto& [trial, slots] : seat.slots_from) {
    parts.push_back(absl::StrCat(Slots(slots), slots == 1 ? " comes" : " come", " from ", trial));
  }
  return absl::StrJoin(parts, ", ");
}

}  // namespace

int TotalSlots(const Shares& shares) {
  return std::accumulate(shares.begin(), shares.end(), 0,
                         [](int sum, const Share& s) { return sum + s.slots; });
}

Board::Board(const Pool& pool) {
  std::map<NodeId, int> index;
  for (const NodeCapacity& node : pool.nodes) {
    ESPALIER_CHECK(index.emplace(node.id, 0).second, "a node is listed once in a pool");
    const int slots = std::max(0, node.slots);
    nodes_.push_back({.id = node.id, .name = NameOf(node), .capacity = slots, .free = slots});
    total_capacity_ += slots;
  }
  std::sort(nodes_.begin(), nodes_.end(), [](const Node& a, const Node& b) { return a.id < b.id; });
  for (std::size_t n = 0; n < nodes_.size(); ++n) index[nodes_[n].id] = static_cast<int>(n);
  total_free_ = total_capacity_;

  std::vector<const Job*> jobs;
  for (const Job& job : pool.jobs) jobs.push_back(&job);
  std::sort(jobs.begin(), jobs.end(), [](const Job* a, const Job* b) {
    return std::tie(a->order, a->id) < std::tie(b->order, b->id);
  });
  seats_.reserve(jobs.size());
  for (const Job* job : jobs) {
    Seat& seat = seats_.emplace_back(*job);
    Shares shares;
    for (const auto& [node, slots] : job->current) {
      const auto at = index.find(node);
      if (slots > 0 && at != index.end()) {
        AddSlots(shares, at->second, slots);
        continue;
      }
      seat.damaged = true;
      seat.lost.push_back(absl::StrCat("node ", node.value, " is gone"));
    }
    Assign(seats_.size() - 1, std::move(shares));
  }
}

double Board::SpeedupWith(std::size_t j, const Shares& shares) {
  return seats_[j].speedup.At(static_cast<int>(shares.size()), TotalSlots(shares));
}

bool Board::MaySpan(std::size_t j, const Node& node) const {
  return node.spanning < 0 || node.spanning == static_cast<int>(j);
}

// A trial that starts on one slot gets the emptiest node, to have room to grow around it; one that
// needs several fills the fullest node that has room for it, to leave the others whole.
std::optional<Shares> Board::Fresh(int slots) const {
  const bool grows = slots == 1;
  int best = -1;
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    if (nodes_[n].free < slots) continue;
    const int best_free = best < 0 ? 0 : nodes_[static_cast<std::size_t>(best)].free;
    if (best < 0 || (grows ? nodes_[n].free > best_free : nodes_[n].free < best_free)) {
      best = static_cast<int>(n);
    }
  }
  if (best < 0) return std::nullopt;
  return Shares{{best, slots}};
}

std::optional<Shares> Board::Grown(std::size_t j, int slots) const {
  const Seat& seat = seats_[j];
  int wanted = slots - seat.total;
  ESPALIER_CHECK(wanted > 0, "growing means more slots");
  if (wanted > total_free_) return std::nullopt;
  if (seat.total == 0) {
    if (auto fresh = Fresh(slots)) return fresh;
  }
  Shares shares = seat.shares;
  for (Share& share : shares) {
    const int taken = std::clamp(nodes_[static_cast<std::size_t>(share.node)].free, 0, wanted);
    share.slots += taken;
    wanted -= taken;
  }
  if (wanted == 0) return shares;
  for (const Share& share : shares) {
    if (!MaySpan(j, nodes_[static_cast<std::size_t>(share.node)])) return std::nullopt;
  }
  std::vector<int> others;
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    const bool own = std::any_of(shares.begin(), shares.end(),
                                 [n](const Share& s) { return s.node == static_cast<int>(n); });
    if (!own && nodes_[n].free > 0 && MaySpan(j, nodes_[n])) others.push_back(static_cast<int>(n));
  }
  std::stable_sort(others.begin(), others.end(), [this](int a, int b) {
    return nodes_[static_cast<std::size_t>(a)].free > nodes_[static_cast<std::size_t>(b)].free;
  });
  for (const int n : others) {
    const int taken = std::min(nodes_[static_cast<std::size_t>(n)].free, wanted);
    AddSlots(shares, n, taken);
    wanted -= taken;
    if (wanted == 0) return shares;
  }
  return std::nullopt;
}

Shares Board::Shrunk(std::size_t j, int slots) const {
  Shares shares = seats_[j].shares;
  int surplus = seats_[j].total - slots;
  while (surplus > 0) {
    const auto least =
        std::min_element(shares.begin(), shares.end(), [](const Share& a, const Share& b) {
          return std::tie(a.slots, b.node) < std::tie(b.slots, a.node);
        });
    const int taken = std::min(least->slots, surplus);
    least->slots -= taken;
    surplus -= taken;
    if (least->slots == 0) shares.erase(least);
  }
  return shares;
}

void Board::Assign(std::size_t j, Shares shares) {
  Seat& seat = seats_[j];
  for (const Share& share : seat.shares) {
    Node& node = nodes_[static_cast<std::size_t>(share.node)];
    node.free += share.slots;
    if (node.spanning == static_cast<int>(j)) node.spanning = -1;
  }
  total_free_ += seat.total;
  seat.shares = std::move(shares);
  seat.total = TotalSlots(seat.shares);
  total_free_ -= seat.total;
  for (const Share& share : seat.shares) {
    Node& node = nodes_[static_cast<std::size_t>(share.node)];
    node.free -= share.slots;
    if (seat.shares.size() > 1 && node.spanning < 0) node.spanning = static_cast<int>(j);
  }
}

Placement Board::PlacementOf(const Seat& seat) const {
  Placement placement;
  for (const Share& share : seat.shares) {
    placement[nodes_[static_cast<std::size_t>(share.node)].id] = share.slots;
  }
  return placement;
}

std::string Board::Reason(std::size_t j) {
  const Seat& seat = seats_[j];
  const Job& job = *seat.job;
  int before = 0;
  for (const auto& [node, slots] : job.current) before += slots;
  const std::string lost = absl::StrJoin(seat.lost, ", ");
  const std::string sources = Sources(seat);
  if (before == 0) {
    return absl::StrFormat("starts on %s: promise %.2f, %s", Slots(seat.total), job.promise,
                           sources);
  }
  if (seat.total == 0) return absl::StrCat("pauses: ", lost, ", no room for its minimum");
  if (seat.total < before) {
    return absl::StrFormat("shrinks %d -> %d: promise %.2f, %s", before, seat.total, job.promise,
                           lost);
  }
  if (seat.total == before) {
    return absl::StrCat("moves: ", lost, lost.empty() || sources.empty() ? "" : ", ", sources);
  }
  const double then = seats_[j].speedup.At(static_cast<int>(job.current.size()), before);
  const double now = SpeedupNow(j);
  return absl::StrFormat("grows %d -> %d: promise %.2f, speedup %.2f -> %.2f (%+.2f weighted), %s",
                         before, seat.total, job.promise, then, now, job.promise * (now - then),
                         sources);
}

std::vector<AllocationDecision> Board::Decisions() {
  std::vector<AllocationDecision> decisions;
  for (std::size_t j = 0; j < seats_.size(); ++j) {
    Placement placement = PlacementOf(seats_[j]);
    if (placement == seats_[j].job->current) continue;
    decisions.push_back({seats_[j].job->id, std::move(placement), Reason(j)});
  }
  return decisions;
}

}  // namespace espalier
