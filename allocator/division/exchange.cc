#include "allocator/division/exchange.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <tuple>

namespace espalier {

namespace {

constexpr double kRounding = 1e-9;  // worths that differ by less are equal
constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr int kNearCounts = 8;  // so many larger counts are tried one by one, then in steps

int SlotsOn(const Shares& shares, int node) {
  for (const Share& share : shares) {
    if (share.node == node) return share.slots;
  }
  return 0;
}

// The shares with `slots` more (or fewer) on the node.
Shares With(Shares shares, int node, int slots) {
  for (std::size_t i = 0; i <= shares.size(); ++i) {
    if (i < shares.size() && shares[i].node < node) continue;
    if (i < shares.size() && shares[i].node == node) {
      shares[i].slots += slots;
      if (shares[i].slots == 0) shares.erase(shares.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      shares.insert(shares.begin() + static_cast<std::ptrdiff_t>(i), {node, slots});
    }
    break;
  }
  return shares;
}

}  // namespace

Exchange::Exchange(Board& board, Objective& objective, const std::vector<SeatLimits>& limits,
                   const ExchangeEffort& effort)
    : board_(board),
      objective_(objective),
      limits_(limits),
      effort_(effort),
      residents_(board.node_count()) {
  for (std::size_t j = 0; j < board.size(); ++j) {
    for (const Share& s : board.seat(j).shares) {
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
  return a > b + kRounding * std::max(1.0, std::abs(b));
}

double Exchange::Total() {
  double sum = 0;
  for (std::size_t j = 0; j < board_.size(); ++j) sum += ValueNow(j);
  return sum;
}

void Exchange::Assign(std::size_t j, Shares shares) {
  for (const Share& s : board_.seat(j).shares) {
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
  const Shares& own = board_.seat(j).shares;
  return std::all_of(shares.begin(), shares.end(), [&](const Share& s) {
    const int more = s.slots - SlotsOn(own, s.node);
    return (more <= 0 || more <= board_.free_on(static_cast<std::size_t>(s.node))) &&
           (shares.size() == 1 || board_.MaySpan(j, s.node));
  });
}

// Legal places for so many slots, without a change to anybody else.
std::vector<Shares> Exchange::Places(std::size_t j, int slots) {
  std::vector<Shares> places;
  const Seat& seat = board_.seat(j);
  const Shares& shown = board_.HeldAtFirst(j);
  if (slots == 0) return {Shares{}};
  if (TotalSlots(shown) == slots && board_.AsShown(j, shown) && FitsNow(j, shown)) {
    places.push_back(shown);
  }
  if (slots == seat.total) places.push_back(seat.shares);
  if (seat.total > 0 && slots > seat.total) {
    if (auto grown = board_.Grown(j, slots)) places.push_back(*std::move(grown));
  }
  if (slots < seat.total) places.push_back(board_.Shrunk(j, slots));
  const bool spans = !places.empty() && places.back().size() > 1;
  const bool elsewhere = seat.total == 0 || places.empty() || board_.types().size() > 1 ||
                         (spans && slots <= most_on_node_) ||
                         (effort_.relocate && slots > seat.total && spans);
  if (!elsewhere) return places;
  const Shares now = seat.shares;
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
  if (*best != board_.seat(j).shares) Assign(j, *std::move(best));
  return true;
}

std::vector<int> Exchange::LargerCounts(std::size_t j) const {
  const int total = board_.seat(j).total;
  const int most = std::min(limits_[j].most, total + board_.total_free());
  std::vector<int> counts;
  int step = 1;
  for (int slots = std::max(total + 1, limits_[j].least); slots <= most; slots += step) {
    counts.push_back(slots);
    if (slots >= total + kNearCounts) step = std::max(1, slots / 8);
  }
  if (!counts.empty() && counts.back() != most) counts.push_back(most);
  return counts;
}

bool Exchange::LetGo() {
  bool changed = false;
  for (std::size_t j = 0; j < board_.size(); ++j) {
    const int total = board_.seat(j).total;
    if (!limits_[j].movable || total <= limits_[j].least) continue;
    std::optional<Shares> best;
    double best_value = ValueNow(j);
    for (int slots = limits_[j].least; slots < total; ++slots) {
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
    const Seat& seat = board_.seat(j);
    if (!limits_[j].movable || seat.total == 0) continue;
    const bool as_shown = board_.AsShown(j, seat.shares);
    if (as_shown && seat.shares.size() == 1 && board_.types().size() == 1) continue;
    const Shares before = seat.shares;
    Place(j, seat.total);
    changed |= board_.seat(j).shares != before;
  }
  return changed;
}

// Free slots, to the greatest gain a slot first.
bool Exchange::GiveFree() {
  if (board_.total_free() == 0) return false;
  struct Offer {
    double per_slot = 0;
    std::size_t seat = 0;
    int slots = 0;
    int version = 0;
    bool operator<(const Offer& o) const {
      return std::tuple(per_slot, o.seat) < std::tuple(o.per_slot, seat);
    }
  };
  int version = 0;
  bool changed = false;
  std::priority_queue<Offer> offers;
  const auto offer = [&](std::size_t j) {
    if (!limits_[j].movable || board_.seat(j).total >= limits_[j].most) return;
    const double now = ValueNow(j);
    Offer best{.seat = j, .version = version};
    for (const int slots : LargerCounts(j)) {
      const double hoped = AtBest(j, slots);
      const int more = slots - board_.seat(j).total;
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
      offer(top.seat);
      continue;
    }
    Place(top.seat, top.slots);
    ++version;
    changed = true;
    offer(top.seat);
  }
  return changed;
}

// What a resident may do for others to have slots of its node.
std::vector<Exchange::Way> Exchange::WaysOf(std::size_t resident, int node) {
  std::vector<Way> ways;
  const SeatLimits& limits = limits_[resident];
  if (!limits.movable) return ways;
  const Seat& seat = board_.seat(resident);
  const int here = SlotsOn(seat.shares, node);
  const double now = ValueNow(resident);
  for (int freed = 1; freed <= here && seat.total - freed >= limits.least; ++freed) {
    Shares fewer = With(seat.shares, node, -freed);
    const double loss = now - ValueOf(resident, fewer);
    ways.push_back({freed, loss, std::move(fewer)});
  }
  if (!effort_.relocate || seat.shares.size() > 1) return ways;
  if (auto fresh = board_.Fresh(resident, here, board_.type_of(static_cast<std::size_t>(node)));
      fresh && fresh->size() == 1 && fresh->front().node != node) {
    const double loss = now - ValueOf(resident, *fresh);
    ways.push_back({here, loss, *std::move(fresh)});
  }
  return ways;
}

Exchange::Relief Exchange::ReliefOf(int node, std::size_t beside, int leaving) {
  Relief relief;
  const auto width =
      static_cast<std::size_t>(board_.capacity_of(static_cast<std::size_t>(node))) + 1;
  relief.loss.assign(width, kNever);
  relief.loss[0] = 0;
  for (const std::size_t resident : residents_[static_cast<std::size_t>(node)]) {
    if (resident == beside) continue;
    std::vector<Way> ways = WaysOf(resident, node);
    const bool must = static_cast<int>(resident) == leaving;
    if (must) {
      const int here = SlotsOn(board_.seat(resident).shares, node);
      std::erase_if(ways, [here](const Way& way) { return way.freed < here; });
    }
    if (ways.empty() && !must) continue;
    std::vector<double> loss = must ? std::vector<double>(width, kNever) : relief.loss;
    std::vector<int> chosen(width, -1);
    for (std::size_t w = 0; w < ways.size(); ++w) {
      for (auto d = static_cast<std::size_t>(ways[w].freed); d < width; ++d) {
        const double sum = relief.loss[d - static_cast<std::size_t>(ways[w].freed)] + ways[w].loss;
        if (sum >= loss[d]) continue;
        loss[d] = sum;
        chosen[d] = static_cast<int>(w);
      }
    }
    relief.loss = std::move(loss);
    relief.residents.push_back(resident);
    relief.ways.push_back(std::move(ways));
    relief.chosen.push_back(std::move(chosen));
  }
  relief.enough.resize(width);
  for (std::size_t d = width; d-- > 0;) {
    const bool last = d + 1 == width;
    const bool more =
        !last && relief.loss[static_cast<std::size_t>(relief.enough[d + 1])] < relief.loss[d];
    relief.enough[d] = more ? relief.enough[d + 1] : static_cast<int>(d);
  }
  return relief;
}

bool Exchange::Free(const Relief& relief, int slots,
                    std::vector<std::pair<std::size_t, Shares>>& before) {
  auto left = static_cast<std::size_t>(slots);
  for (std::size_t r = relief.residents.size(); r-- > 0 && left > 0;) {
    const int chosen = relief.chosen[r][left];
    if (chosen < 0) continue;
    const Way& way = relief.ways[r][static_cast<std::size_t>(chosen)];
    const std::size_t resident = relief.residents[r];
    left -= static_cast<std::size_t>(way.freed);
    // Two may have been promised the same free place.
    if (!FitsNow(resident, way.shares)) {
      for (auto it = before.rbegin(); it != before.rend(); ++it) Assign(it->first, it->second);
      before.clear();
      return false;
    }
    before.emplace_back(resident, board_.seat(resident).shares);
    Assign(resident, way.shares);
  }
  return true;
}

// The job takes further slots on the node, free ones and others' there.
bool Exchange::TakeOn(std::size_t j, int node) {
  const auto n = static_cast<std::size_t>(node);
  const Seat& seat = board_.seat(j);
  if (board_.draining(n) || board_.type_of(n) != board_.type_of(seat.shares)) return false;
  const int own = SlotsOn(seat.shares, node);
  int leaving = -1;
  if (own == 0) {
    const bool may_span = std::all_of(seat.shares.begin(), seat.shares.end(),
                                      [&](const Share& s) { return board_.MaySpan(j, s.node); });
    if (!may_span) return false;
    // Who spans from there must leave.
    leaving = board_.spanning_on(node);
  }
  const int free = board_.free_on(n);
  const double now = ValueNow(j);
  const int room = std::min(board_.capacity_of(n) - own, limits_[j].most - seat.total);
  const Relief relief = ReliefOf(node, j, leaving);
  Taking best;
  for (int more = 1; more <= room; ++more) {
    const int freed = relief.enough[static_cast<std::size_t>(std::max(0, more - free))];
    const double loss = relief.loss[static_cast<std::size_t>(freed)];
    if (seat.total + more < limits_[j].least || loss == kNever) continue;
    Shares shares = With(seat.shares, node, more);
    const double net = ValueOf(j, shares) - now - loss;
    if (Better(net, best.net)) best = {net, freed, std::move(shares)};
  }
  if (best.shares.empty()) return false;
  std::vector<std::pair<std::size_t, Shares>> before;
  if (!Free(relief, best.freed, before)) return false;
  Assign(j, std::move(best.shares));
  return true;
}

// The job leaves where it is and takes slots on the node, free ones and others' there, who may go
// where it was.
bool Exchange::MoveTo(std::size_t j, int node) {
  const auto n = static_cast<std::size_t>(node);
  if (board_.draining(n)) return false;
  const Shares from = board_.seat(j).shares;
  const double now = ValueNow(j);
  Assign(j, {});
  const int free = board_.free_on(n);
  const int room = std::min(board_.capacity_of(n), limits_[j].most);
  const Relief relief = ReliefOf(node, j);
  Taking best;
  for (int slots = std::max(1, limits_[j].least); slots <= room; ++slots) {
    const int freed = relief.enough[static_cast<std::size_t>(std::max(0, slots - free))];
    const double loss = relief.loss[static_cast<std::size_t>(freed)];
    if (loss == kNever) continue;
    Shares shares{{node, slots}};
    const double net = ValueOf(j, shares) - now - loss;
    if (shares != from && Better(net, best.net)) best = {net, freed, std::move(shares)};
  }
  std::vector<std::pair<std::size_t, Shares>> before;
  if (best.shares.empty() || !Free(relief, best.freed, before)) {
    Assign(j, from);
    return false;
  }
  Assign(j, std::move(best.shares));
  return true;
}

double Exchange::AtBest(std::size_t j, int slots) {
  const Shares& shown = board_.HeldAtFirst(j);
  const int type = std::max(0, board_.type_of(board_.seat(j).shares));
  const Shape shape{
      .nodes = slots <= most_on_node_ ? std::min(slots, 1) : 2, .slots = slots, .type = type};
  const double moved = objective_.Value(j, shape, Move::kResize);
  // Other types may be better ones: what they would bring is not guessed here.
  if (board_.types().size() > 1) return std::numeric_limits<double>::infinity();
  if (TotalSlots(shown) != slots) return moved;
  return std::max(moved, ValueOf(j, shown));
}

// The most a seat could gain a slot by growing, were there room wherever it likes.
double Exchange::HopedFor(std::size_t j) {
  const Seat& seat = board_.seat(j);
  const double now = ValueNow(j);
  const int type = std::max(0, board_.type_of(seat.shares));
  double hoped = 0;
  for (int more = 1; more <= kNearCounts && seat.total + more <= limits_[j].most; ++more) {
    const int slots = seat.total + more;
    for (const int nodes : {1, 2}) {
      if (nodes == 1 && slots > most_on_node_) continue;
      const Shape shape{.nodes = nodes, .slots = slots, .type = type};
      hoped = std::max(hoped, (objective_.Value(j, shape, Move::kResize) - now) / more);
    }
  }
  return hoped;
}

bool Exchange::TakeFromOthers() {
  // Nodes by what a slot there is missed.
  std::vector<std::pair<double, int>> nodes;
  for (std::size_t n = 0; n < board_.node_count(); ++n) {
    if (board_.draining(n) || board_.capacity_of(n) == 0) continue;
    double least = board_.free_on(n) > 0 ? 0 : kNever;
    if (least > 0) {
      const Relief relief = ReliefOf(static_cast<int>(n), board_.size());
      for (std::size_t d = 1; d < relief.loss.size(); ++d) {
        least = std::min(least, relief.loss[d] / static_cast<double>(d));
      }
    }
    if (least < kNever) nodes.emplace_back(least, static_cast<int>(n));
  }
  if (nodes.empty()) return false;
  std::sort(nodes.begin(), nodes.end());
  std::vector<std::pair<double, std::size_t>> receivers;
  for (std::size_t j = 0; j < board_.size(); ++j) {
    if (!limits_[j].movable) continue;
    const bool empty = board_.seat(j).total == 0;
    if (board_.seat(j).total >= limits_[j].most ||
        (empty && limits_[j].least == 0 && !objective_.MayPause())) {
      continue;
    }
    receivers.emplace_back(-HopedFor(j), j);
  }
  std::sort(receivers.begin(), receivers.end());
  bool changed = false;
  for (const auto& [negated, j] : receivers) {
    if (-negated <= nodes.front().first) break;
    std::vector<int> tried;
    for (const Share& share : board_.seat(j).shares) tried.push_back(share.node);
    for (const auto& [loss, node] : nodes) {
      if (tried.size() >= effort_.nodes_tried || loss >= -negated) break;
      if (SlotsOn(board_.seat(j).shares, node) == 0) tried.push_back(node);
    }
    for (const int node : tried) {
      if (board_.seat(j).total > 0 && TakeOn(j, node)) {
        changed = true;
      } else if (effort_.relocate && MoveTo(j, node)) {
        changed = true;
      }
    }
  }
  return changed;
}

}  // namespace espalier
