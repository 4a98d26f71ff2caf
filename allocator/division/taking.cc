// How Exchange takes slots of a node for one job from those who miss them least there.

#include <algorithm>
#include <limits>
#include <utility>

#include "allocator/division/exchange.h"

namespace espalier {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

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

// The most a seat could gain a slot by growing, were there room wherever it likes.
double Exchange::HopedFor(std::size_t j) {
  const Seat& seat = board_.seat(j);
  const double now = ValueNow(j);
  const int type = std::max(0, board_.type_of(seat.shares));
  double hoped = 0;
  for (int more = 1; more <= effort_.near_counts && seat.total + more <= limits_[j].most; ++more) {
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
