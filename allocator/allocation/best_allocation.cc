#include "allocator/allocation/best_allocation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "allocator/allocation/exchange.h"
#include "allocator/allocation/knapsack.h"
#include "allocator/allocation/reallocation.h"
#include "base/random.h"

namespace espalier {

namespace {

// Up to so many holders x nodes everything is tried; beyond, what usually finds the rest.
constexpr std::size_t kSmall = 4096;
// Pools with up to so many slots consider every count of slots for each holder.
constexpr int kEveryCount = 512;
// An outcome must be better by this share of the whole to be worth any change.
constexpr double kWorthwhile = 1e-7;

using Holding = std::vector<Shares>;  // by holder

// How many slots each holder should have, and what all would be worth if each found the best place.
struct Plan {
  std::vector<int> targets;
  double bound = 0;
};

class AllocationSearch {
 public:
  AllocationSearch(Board& board, Objective& objective, double min_resize_interval_s,
                   const AllocationEffort& search)
      : board_(board), objective_(objective), search_(search) {
    for (std::size_t j = 0; j < board.size(); ++j) {
      const Job& job = *board.holder(j).job;
      const bool settled = job.current.empty() || job.since_resize_s >= min_resize_interval_s;
      const bool placed_or_pausable = board.holder(j).total > 0 || objective.MayPause();
      limits_.push_back({.movable = !job.joining && settled && placed_or_pausable,
                         .least = objective.MayPause() ? 0 : MinSlots(job),
                         .most = PauseAwareGrowthCap(job)});
    }
    small_ = board.size() * board.node_count() <= kSmall;
    effort_.relocate = small_;
    effort_.nodes_tried = small_ ? board.node_count() : 8;
    effort_.rounds = small_ ? 50 : 4;
    effort_.near_counts = small_ ? 8 : 4;
  }

  void Run() {
    Exchange exchange(board_, objective_, limits_, effort_);
    const Holding start = Held();
    const double worth_at_start = exchange.Total();
    Holding best = start;
    double best_worth = worth_at_start + kWorthwhile * std::max(1.0, std::abs(worth_at_start));
    const auto consider = [&] {
      const double worth = exchange.Total();
      if (worth <= best_worth) return;
      best_worth = worth;
      best = Held();
    };
    if (small_) {
      exchange.Run();
      consider();
      Restore(exchange, start);
    }
    const Plan plan = MakePlan();
    Realise(exchange, plan.targets);
    exchange.Run();
    consider();
    if (small_) {
      Restore(exchange, start);
      Repack(exchange, plan.targets);
      exchange.Run();
      consider();
      Restore(exchange, best);
      Polish(exchange, plan.bound);
      consider();
    }
    Restore(exchange, best);
  }

 private:
  Holding Held() const {
    Holding held;
    for (std::size_t j = 0; j < board_.size(); ++j) held.push_back(board_.holder(j).shares);
    return held;
  }
  void Restore(Exchange& exchange, const Holding& holding) {
    std::vector<std::size_t> changed;
    for (std::size_t j = 0; j < board_.size(); ++j) {
      if (board_.holder(j).shares != holding[j]) changed.push_back(j);
    }
    for (const std::size_t j : changed) exchange.Assign(j, {});
    for (const std::size_t j : changed) exchange.Assign(j, holding[j]);
  }

  double WorthNow(std::size_t j) { return objective_.WorthOf(board_, j, board_.holder(j).shares); }

  std::vector<int> CountsOf(std::size_t j, int node_slots) const;
  std::vector<KnapsackChoice> ChoicesOf(std::size_t j, int type, int node_slots);
  Plan MakePlan();
  void Realise(Exchange& exchange, const std::vector<int>& targets);
  void Repack(Exchange& exchange, const std::vector<int>& targets);
  void Polish(Exchange& exchange, double bound);
  std::vector<int> UsableNodes(int type) const;

  Board& board_;
  Objective& objective_;
  std::vector<HolderLimits> limits_;
  const AllocationEffort search_;
  ExchangeEffort effort_;
  bool small_ = true;
};

// Sensible numbers of slots: in a large pool beyond two nodes only whole nodes, in growing steps.
std::vector<int> AllocationSearch::CountsOf(std::size_t j, int node_slots) const {
  const HolderLimits& limits = limits_[j];
  const Holder& holder = board_.holder(j);
  const std::vector<int>& sizes = holder.job->sizes;
  std::vector<int> counts{holder.total, TotalSlots(board_.HeldAtFirst(j))};
  if (limits.least == 0) counts.push_back(0);
  const int most = std::min(limits.most, board_.total_capacity());
  const bool every = board_.total_capacity() <= kEveryCount;
  int step = 1;
  for (int slots = std::max(1, limits.least); slots <= most && sizes.empty(); slots += step) {
    counts.push_back(slots);
    if (every || slots < 2 * node_slots) continue;
    step = std::max(1, slots / 4 / node_slots) * node_slots - slots % node_slots;
  }
  counts.push_back(std::max(most, limits.least));
  counts.insert(counts.end(), sizes.begin(), sizes.end());
  std::erase_if(counts, [&](int slots) {
    if (slots != holder.total && !FitsSizes(*holder.job, slots)) {
      return true;
    }
    return slots != holder.total && (slots < limits.least || slots > std::max(most, limits.least));
  });
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

// What each count would be worth in the best place one could hope for.
std::vector<KnapsackChoice> AllocationSearch::ChoicesOf(std::size_t j, int type, int node_slots) {
  std::vector<KnapsackChoice> choices;
  const int bound = board_.holder(j).job->most_on_node;
  const int on_one = bound > 0 ? std::min(bound, node_slots) : node_slots;
  const Shares& shown = board_.HeldAtFirst(j);
  const bool intact = board_.AsShown(j, shown);
  for (const int slots : CountsOf(j, node_slots)) {
    Shape shape{.nodes = slots <= on_one ? std::min(slots, 1) : 2, .slots = slots, .type = type};
    double value = objective_.Value(j, shape, Move::kResize);
    if (intact && slots == TotalSlots(shown)) {
      shape.nodes = static_cast<int>(shown.size());
      value = std::max(value, objective_.Value(j, shape, Move::kStay));
    }
    choices.push_back({slots, value});
  }
  return choices;
}

std::vector<int> AllocationSearch::UsableNodes(int type) const {
  std::vector<int> nodes;
  for (std::size_t n = 0; n < board_.node_count(); ++n) {
    const bool usable = board_.type_of(n) == type && !board_.draining(n);
    if (usable && board_.capacity_of(n) > 0) nodes.push_back(static_cast<int>(n));
  }
  return nodes;
}

Plan AllocationSearch::MakePlan() {
  Plan plan;
  std::vector<bool> planned(board_.size(), false);
  for (std::size_t j = 0; j < board_.size(); ++j) plan.targets.push_back(board_.holder(j).total);
  for (int type = 0; type < static_cast<int>(board_.types().size()); ++type) {
    int node_slots = 0;
    for (const int n : UsableNodes(type)) {
      node_slots = std::max(node_slots, board_.capacity_of(static_cast<std::size_t>(n)));
    }
    int capacity = board_.free_of_type(type);
    std::vector<std::size_t> holders;
    std::vector<std::vector<KnapsackChoice>> items;
    for (std::size_t j = 0; j < board_.size(); ++j) {
      const Shares& shares = board_.holder(j).shares;
      const int own = shares.empty() ? 0 : board_.type_of(shares);
      const bool drains = std::any_of(shares.begin(), shares.end(), [this](const Share& s) {
        return board_.draining(static_cast<std::size_t>(s.node));
      });
      if (!limits_[j].movable || own != type || drains) continue;
      capacity += board_.holder(j).total;
      holders.push_back(j);
      items.push_back(ChoicesOf(j, type, node_slots));
    }
    const auto solution = SolveKnapsack(items, capacity);
    if (!solution) continue;
    for (std::size_t i = 0; i < holders.size(); ++i) {
      const KnapsackChoice& choice = items[i][static_cast<std::size_t>((*solution)[i])];
      plan.targets[holders[i]] = choice.slots;
      plan.bound += choice.value;
      planned[holders[i]] = true;
    }
  }
  for (std::size_t j = 0; j < board_.size(); ++j) {
    if (!planned[j]) plan.bound += WorthNow(j);
  }
  return plan;
}

// First who gives, then who takes, the largest first.
void AllocationSearch::Realise(Exchange& exchange, const std::vector<int>& targets) {
  std::vector<std::size_t> growing;
  for (std::size_t j = 0; j < board_.size(); ++j) {
    const int total = board_.holder(j).total;
    if (targets[j] < total) exchange.Place(j, targets[j]);
    if (targets[j] > total) growing.push_back(j);
  }
  std::stable_sort(growing.begin(), growing.end(),
                   [&](std::size_t a, std::size_t b) { return targets[a] > targets[b]; });
  for (const std::size_t j : growing) exchange.Place(j, targets[j]);
}

// As if everybody left and came back, the largest first, to their own nodes if there is room.
void AllocationSearch::Repack(Exchange& exchange, const std::vector<int>& targets) {
  std::vector<std::size_t> holders;
  const Holding before = Held();
  for (std::size_t j = 0; j < board_.size(); ++j) {
    if (limits_[j].movable) holders.push_back(j);
  }
  std::stable_sort(holders.begin(), holders.end(),
                   [&](std::size_t a, std::size_t b) { return targets[a] > targets[b]; });
  for (const std::size_t j : holders) exchange.Assign(j, {});
  std::vector<std::size_t> without;
  for (const std::size_t j : holders) {
    if (!exchange.Place(j, targets[j])) without.push_back(j);
  }
  // Nobody may come away with less than its minimum.
  for (const std::size_t j : without) {
    if (exchange.Place(j, limits_[j].least)) continue;
    Restore(exchange, before);
    return;
  }
}

// Divides a few nodes at a time anew: all of them if they are few; else all pairs, and then fours
// drawn at random, until nothing is gained, the whole is near its bound or enough has been spent.
void AllocationSearch::Polish(Exchange& exchange, double bound) {
  double steps = 0;
  const auto near = [&] {
    return bound - exchange.Total() <= search_.near_bound * std::abs(bound) ||
           steps >= search_.polish_steps;
  };
  const auto reallocate = [&](std::span<const int> nodes) {
    const ReallocationResult result =
        Reallocate(board_, exchange, objective_, limits_, nodes, search_.polish_steps - steps);
    steps += result.steps;
    return result;
  };
  for (int type = 0; type < static_cast<int>(board_.types().size()); ++type) {
    const std::vector<int> nodes = UsableNodes(type);
    if (nodes.size() <= kMostReallocated && reallocate(nodes).complete) continue;
    for (bool changed = true; changed && !near();) {
      changed = false;
      for (std::size_t a = 0; a < nodes.size(); ++a) {
        for (std::size_t b = a + 1; b < nodes.size() && steps < search_.polish_steps; ++b) {
          const std::array pair = {nodes[a], nodes[b]};
          changed |= reallocate(pair).changed;
        }
      }
      if (changed) exchange.Run();
    }
    if (nodes.size() <= kMostReallocated) continue;
    Random random(1);
    for (int draw = 0; draw < search_.polish_draws && !near(); ++draw) {
      std::vector<int> drawn = nodes;
      for (std::size_t i = 0; i < kMostReallocated; ++i) {
        std::swap(drawn[i], drawn[i + random.Below(drawn.size() - i)]);
      }
      drawn.resize(kMostReallocated);
      if (reallocate(drawn).changed) exchange.Run();
    }
  }
}

}  // namespace

void BestAllocation(Board& board, Objective& objective, double min_resize_interval_s,
                    const AllocationEffort& effort) {
  if (board.size() == 0 || board.total_capacity() == 0) return;
  AllocationSearch(board, objective, min_resize_interval_s, effort).Run();
}

}  // namespace espalier
