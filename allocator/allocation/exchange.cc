#include "allocator/allocation/exchange.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <tuple>

namespace espalier {

namespace {

constexpr double kEqualWorth = 1e-9;  // worths that differ by less are equal

}  // namespace

Exchange::Exchange(Board& board, Objective& objective, const std::vector<HolderLimits>& limits,
                   const ExchangeEffort& effort)
    : board_(board),
      objective_(objective),
      limits_(limits),
      effort_(effort),
      residents_(board.node_count()) {
  for (std::size_t j = 0; j < board.size(); ++j) {
    for (const Share& s : board.holder(j).shares) {
      residents_[static_cast<std::size_t>(s.node)].push_back(j);
    }
  }
  for (std::size_t n = 0; n < board.node_count(); ++n) {
    most_on_node_ = std::max(most_on_node_, board.capacity_of(n));
  }
}

double Exchange::ValueOf(std::size_t j, const Shares& shares) {
  return objective_.WorthOf(board_, j, shares);
}

bool Exchange::Better(double a, double b) const {
  return a > b + kEqualWorth * std::max(1.0, std::abs(b));
}

int Exchange::MostOnNode(std::size_t j) const {
  const int bound = board_.holder(j).job->most_on_node;
  return bound > 0 ? std::min(bound, most_on_node_) : most_on_node_;
}

double Exchange::Total() {
  double sum = 0;
  for (std::size_t j = 0; j < board_.size(); ++j) sum += ValueNow(j);
  return sum;
}

void Exchange::Assign(std::size_t j, Shares shares) {
  for (const Share& s : board_.holder(j).shares) {
    std::vector<std::size_t>& here = residents_[static_cast<std::size_t>(s.node)];
    here.erase(std::lower_bound(here.begin(), here.end(), j));
  }
  for (const Share& s : shares) {
    std::vector<std::size_t>& here = residents_[static_cast<std::size_t>(s.node)];
    here.insert(std::lower_bound(here.begin(), here.end(), j), j);
  }
  board_.Assign(j, std::move(shares));
}

void Exchange::Run() {
  for (int round = 0; round < effort_.rounds; ++round) {
    bool changed = LetGo();
    changed |= Relocate();
    changed |= GiveFree();
    changed |= TakeFromOthers();
    if (!changed) return;
  }
}

bool Exchange::FitsNow(std::size_t j, const Shares& shares) const {
  const Shares& own = board_.holder(j).shares;
  return std::all_of(shares.begin(), shares.end(), [&](const Share& s) {
    const int more = s.slots - SlotsOn(own, s.node);
    return (more <= 0 || more <= board_.free_on(static_cast<std::size_t>(s.node))) &&
           (shares.size() == 1 || board_.MaySpan(j, s.node));
  });
}

// Legal places for so many slots, without a change to anybody else.
std::vector<Shares> Exchange::Places(std::size_t j, int slots) {
  std::vector<Shares> places;
  const Holder& holder = board_.holder(j);
  const Shares& shown = board_.HeldAtFirst(j);
  if (slots == 0) return {Shares{}};
  if (TotalSlots(shown) == slots && board_.AsShown(j, shown) && FitsNow(j, shown)) {
    places.push_back(shown);
  }
  if (slots == holder.total) places.push_back(holder.shares);
  if (holder.total > 0 && slots > holder.total) {
    if (auto grown = board_.Grown(j, slots)) places.push_back(*std::move(grown));
  }
  if (slots < holder.total) places.push_back(board_.Shrunk(j, slots));
  const bool spans = !places.empty() && places.back().size() > 1;
  const bool elsewhere = holder.total == 0 || places.empty() || board_.types().size() > 1 ||
                         (spans && slots <= MostOnNode(j)) ||
                         (effort_.relocate && slots > holder.total && spans);
  if (!elsewhere) return places;
  const Shares now = holder.shares;
  board_.Assign(j, {});
  for (std::size_t type = 0; type < board_.types().size(); ++type) {
    if (auto fresh = board_.Fresh(j, slots, static_cast<int>(type))) {
      places.push_back(*std::move(fresh));
    }
  }
  board_.Assign(j, now);
  return places;
}

bool Exchange::Place(std::size_t j, int slots) {
  std::optional<Shares> best;
  double best_value = 0;
  for (Shares& place : Places(j, slots)) {
    const double value = ValueOf(j, place);
    if (best && !Better(value, best_value)) continue;
    best = std::move(place);
    best_value = value;
  }
  if (!best) return false;
  if (*best != board_.holder(j).shares) Assign(j, *std::move(best));
  return true;
}

std::vector<int> Exchange::LargerCounts(std::size_t j) const {
  const int total = board_.holder(j).total;
  const int most = std::min(limits_[j].most, total + board_.total_free());
  std::vector<int> counts;
  const Job& job = *board_.holder(j).job;
  if (!job.sizes.empty()) {
    for (int slots = NextSize(job, total); slots > 0 && slots <= most;) {
      counts.push_back(slots);
      slots = NextSize(job, slots);
    }
    return counts;
  }
  int step = 1;
  for (int slots = std::max(total + 1, limits_[j].least); slots <= most; slots += step) {
    counts.push_back(slots);
    if (slots >= total + effort_.near_counts) step = std::max(1, slots / effort_.near_counts);
  }
  if (!counts.empty() && counts.back() != most) counts.push_back(most);
  return counts;
}

bool Exchange::LetGo() {
  bool changed = false;
  for (std::size_t j = 0; j < board_.size(); ++j) {
    const int total = board_.holder(j).total;
    if (!limits_[j].movable || total <= limits_[j].least) continue;
    std::optional<Shares> best;
    double best_value = ValueNow(j);
    for (int slots = limits_[j].least; slots < total; ++slots) {
      if (!FitsSizes(*board_.holder(j).job, slots)) continue;
      if (!Better(AtBest(j, slots), best_value)) continue;
      Shares shrunk = board_.Shrunk(j, slots);
      const double value = ValueOf(j, shrunk);
      if (!Better(value, best_value)) continue;
      best = std::move(shrunk);
      best_value = value;
    }
    if (!best) continue;
    Assign(j, *std::move(best));
    changed = true;
  }
  return changed;
}

bool Exchange::Relocate() {
  bool changed = false;
  for (std::size_t j = 0; j < board_.size(); ++j) {
    const Holder& holder = board_.holder(j);
    if (!limits_[j].movable || holder.total == 0) continue;
    const bool as_shown = board_.AsShown(j, holder.shares);
    if (as_shown && holder.shares.size() == 1 && board_.types().size() == 1) continue;
    const Shares before = holder.shares;
    Place(j, holder.total);
    changed |= board_.holder(j).shares != before;
  }
  return changed;
}

// Free slots, to the greatest gain a slot first.
bool Exchange::GiveFree() {
  if (board_.total_free() == 0) return false;
  struct Offer {
    double per_slot = 0;
    std::size_t holder = 0;
    int slots = 0;
    int version = 0;
    bool operator<(const Offer& o) const {
      return std::tuple(per_slot, o.holder) < std::tuple(o.per_slot, holder);
    }
  };
  int version = 0;
  bool changed = false;
  std::priority_queue<Offer> offers;
  const auto offer = [&](std::size_t j) {
    if (!limits_[j].movable || board_.holder(j).total >= limits_[j].most) return;
    const double now = ValueNow(j);
    Offer best{.holder = j, .version = version};
    for (const int slots : LargerCounts(j)) {
      const double hoped = AtBest(j, slots);
      const int more = slots - board_.holder(j).total;
      if (!Better(hoped, now) || (hoped - now) / more <= best.per_slot) continue;
      for (const Shares& place : Places(j, slots)) {
        const double value = ValueOf(j, place);
        const double per_slot = (value - now) / more;
        if (!Better(value, now) || per_slot <= best.per_slot) continue;
        best.per_slot = per_slot;
        best.slots = slots;
      }
    }
    if (best.slots > 0) offers.push(best);
  };
  for (std::size_t j = 0; j < board_.size(); ++j) offer(j);
  while (!offers.empty() && board_.total_free() > 0) {
    const Offer top = offers.top();
    offers.pop();
    // Free slots mostly become fewer here, so that what was worked out earlier is at most too good:
    // it is enough to look again at what comes out first.
    if (top.version != version) {
      offer(top.holder);
      continue;
    }
    Place(top.holder, top.slots);
    ++version;
    changed = true;
    offer(top.holder);
  }
  return changed;
}

double Exchange::AtBest(std::size_t j, int slots) {
  const Shares& shown = board_.HeldAtFirst(j);
  const int type = std::max(0, board_.type_of(board_.holder(j).shares));
  const Shape shape{
      .nodes = slots <= MostOnNode(j) ? std::min(slots, 1) : 2, .slots = slots, .type = type};
  const double moved = objective_.Value(j, shape, Move::kResize);
  // Other types may be better ones: what they would bring is not guessed here.
  if (board_.types().size() > 1) return std::numeric_limits<double>::infinity();
  if (TotalSlots(shown) != slots) return moved;
  return std::max(moved, ValueOf(j, shown));
}

}  // namespace espalier
