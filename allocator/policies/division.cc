#include "allocator/policies/division.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "allocator/policies/exchange.h"
#include "allocator/policies/knapsack.h"

namespace espalier {

namespace {

// Up to so many seats x nodes everything is tried; beyond, what usually finds the rest.
constexpr std::size_t kSmall = 4096;
// Pools with up to so many slots consider every count of slots for each seat.
constexpr int kEveryCount = 512;
// An outcome must be better by this share of the whole to be worth any change.
constexpr double kWorthwhile = 1e-7;

using Holding = std::vector<Shares>;  // by seat

class Division {
 public:
  Division(Board& board, const Objective& objective, double min_resize_interval_s)
      : board_(board), objective_(objective) {
    for (std::size_t j = 0; j < board.size(); ++j) {
      const Job& job = *board.seat(j).job;
      const bool settled = job.current.empty() || job.since_resize_s >= min_resize_interval_s;
      const bool seated = board.seat(j).total > 0 || objective.MayPause();
      limits_.push_back({.movable = !job.joining && settled && seated,
                         .least = objective.MayPause() ? 0 : MinSlots(job),
                         .most = GrowthCap(job)});
    }
    small_ = board.size() * board.node_count() <= kSmall;
    effort_.relocate = small_;
    effort_.nodes_tried = small_ ? board.node_count() : 8;
    effort_.rounds = small_ ? 50 : 4;
  }

  void Run() {
    Exchange exchange(board_, objective_, limits_, effort_);
    const Holding start = Held();
    const double worth_at_start = exchange.Total();
    Holding best = start;
    double best_worth = worth_at_start + kWorthwhile * std::max(1.0, std::abs(worth_at_start));
    const auto consider = [&] {
      exchange.Run();
      const double worth = exchange.Total();
      if (worth <= best_worth) return;
      best_worth = worth;
      best = Held();
    };
    if (small_) {
      consider();
      Restore(exchange, start);
    }
    Realise(exchange, Targets());
    consider();
    Restore(exchange, best);
  }

 private:
  Holding Held() const {
    Holding held;
    for (std::size_t j = 0; j < board_.size(); ++j) held.push_back(board_.seat(j).shares);
    return held;
  }
  void Restore(Exchange& exchange, const Holding& holding) {
    std::vector<std::size_t> changed;
    for (std::size_t j = 0; j < board_.size(); ++j) {
      if (board_.seat(j).shares != holding[j]) changed.push_back(j);
    }
    for (const std::size_t j : changed) exchange.Assign(j, {});
    for (const std::size_t j : changed) exchange.Assign(j, holding[j]);
  }

  std::vector<int> CountsOf(std::size_t j, int node_slots) const;
  std::vector<Choice> ChoicesOf(std::size_t j, int type, int node_slots);
  std::vector<int> Targets();
  void Realise(Exchange& exchange, const std::vector<int>& targets);

  Board& board_;
  const Objective& objective_;
  std::vector<SeatLimits> limits_;
  ExchangeEffort effort_;
  bool small_ = true;
};

// Sensible numbers of slots: in a large pool beyond two nodes only whole nodes, in growing steps.
std::vector<int> Division::CountsOf(std::size_t j, int node_slots) const {
  const SeatLimits& limits = limits_[j];
  const Seat& seat = board_.seat(j);
  std::vector<int> counts{seat.total, TotalSlots(board_.HeldAtFirst(j))};
  if (limits.least == 0) counts.push_back(0);
  const int most = std::min(limits.most, board_.total_capacity());
  const bool every = board_.total_capacity() <= kEveryCount;
  int step = 1;
  for (int slots = std::max(1, limits.least); slots <= most; slots += step) {
    counts.push_back(slots);
    if (every || slots < 2 * node_slots) continue;
    step = std::max(1, slots / 8 / node_slots) * node_slots - slots % node_slots;
  }
  counts.push_back(std::max(most, limits.least));
  std::erase_if(counts, [&](int slots) {
    return slots != seat.total && (slots < limits.least || slots > std::max(most, limits.least));
  });
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

// What each count would be worth in the best place one could hope for.
std::vector<Choice> Division::ChoicesOf(std::size_t j, int type, int node_slots) {
  std::vector<Choice> choices;
  const Seat& seat = board_.seat(j);
  const Shares& shown = board_.HeldAtFirst(j);
  const bool intact = board_.AsShown(j, shown);
  const std::string& name = board_.types()[static_cast<std::size_t>(type)];
  for (const int slots : CountsOf(j, node_slots)) {
    const double speedup = seat.speedup->At(slots <= node_slots ? 1 : 2, slots, name);
    const bool moved = !(intact && shown.empty() && slots == 0);
    double value = objective_.Value(j, speedup, slots, moved);
    if (intact && slots == TotalSlots(shown)) {
      value = std::max(value,
                       objective_.Value(j, board_.SpeedupWith(j, shown), slots, /*moved=*/false));
    }
    choices.push_back({slots, value});
  }
  return choices;
}

std::vector<int> Division::Targets() {
  std::vector<int> targets;
  for (std::size_t j = 0; j < board_.size(); ++j) targets.push_back(board_.seat(j).total);
  for (std::size_t type = 0; type < board_.types().size(); ++type) {
    int node_slots = 0;
    for (std::size_t n = 0; n < board_.node_count(); ++n) {
      const bool mine = board_.type_of(n) == static_cast<int>(type) && !board_.draining(n);
      if (mine) node_slots = std::max(node_slots, board_.capacity_of(n));
    }
    int capacity = board_.free_of_type(static_cast<int>(type));
    std::vector<std::size_t> seats;
    std::vector<std::vector<Choice>> items;
    for (std::size_t j = 0; j < board_.size(); ++j) {
      const Shares& shares = board_.seat(j).shares;
      const int own = shares.empty() ? 0 : board_.type_of(shares);
      const bool drains = std::any_of(shares.begin(), shares.end(), [this](const Share& s) {
        return board_.draining(static_cast<std::size_t>(s.node));
      });
      if (!limits_[j].movable || own != static_cast<int>(type) || drains) continue;
      capacity += board_.seat(j).total;
      seats.push_back(j);
      items.push_back(ChoicesOf(j, static_cast<int>(type), node_slots));
    }
    const auto solution = SolveKnapsack(items, capacity);
    if (!solution) continue;
    for (std::size_t i = 0; i < seats.size(); ++i) {
      targets[seats[i]] = items[i][static_cast<std::size_t>((*solution)[i])].slots;
    }
  }
  return targets;
}

// First who gives, then who takes, the largest first.
void Division::Realise(Exchange& exchange, const std::vector<int>& targets) {
  std::vector<std::size_t> growing;
  for (std::size_t j = 0; j < board_.size(); ++j) {
    const int total = board_.seat(j).total;
    if (targets[j] < total) exchange.Place(j, targets[j]);
    if (targets[j] > total) growing.push_back(j);
  }
  std::stable_sort(growing.begin(), growing.end(),
                   [&](std::size_t a, std::size_t b) { return targets[a] > targets[b]; });
  for (const std::size_t j : growing) exchange.Place(j, targets[j]);
}

}  // namespace

void BestDivision(Board& board, const Objective& objective, double min_resize_interval_s) {
  if (board.size() == 0 || board.total_capacity() == 0) return;
  Division(board, objective, min_resize_interval_s).Run();
}

}  // namespace espalier
