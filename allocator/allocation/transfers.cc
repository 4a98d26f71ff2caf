// How Exchange takes slots of a node for one job from those that miss them least there.

#include <algorithm>
#include <limits>
#include <utility>

#include "allocator/allocation/exchange.h"

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
std::vector<Exchange::Release> Exchange::ReleasesOf(std::size_t resident, int node) {
  std::vector<Release> releases;
  const HolderLimits& limits = limits_[resident];
  if (!limits.movable) return releases;
  const Holder& holder = board_.holder(resident);
  const int here = SlotsOn(holder.shares, node);
  const double now = ValueNow(resident);
  for (int freed = 1; freed <= here && holder.total - freed >= limits.least; ++freed) {
    if (!FitsSizes(*holder.job, holder.total - freed)) continue;
    Shares fewer = With(holder.shares, node, -freed);
    const double loss = now - ValueOf(resident, fewer);
    releases.push_back({freed, loss, std::move(fewer)});
  }
  if (!effort_.relocate || holder.shares.size() > 1) return releases;
  if (auto fresh = board_.Fresh(resident, here, board_.type_of(static_cast<std::size_t>(node)));
      fresh && fresh->size() == 1 && fresh->front().node != node) {
    const double loss = now - ValueOf(resident, *fresh);
    releases.push_back({here, loss, *std::move(fresh)});
  }
  return releases;
}

Exchange::ReleasePlan Exchange::PlanRelease(int node, std::size_t beside, int leaving) {
  ReleasePlan plan;
  const auto width =
      static_cast<std::size_t>(board_.capacity_of(static_cast<std::size_t>(node))) + 1;
  plan.loss.assign(width, kNever);
  plan.loss[0] = 0;
  for (const std::size_t resident : residents_[static_cast<std::size_t>(node)]) {
    if (resident == beside) continue;
    std::vector<Release> releases = ReleasesOf(resident, node);
    const bool must = static_cast<int>(resident) == leaving;
    if (must) {
      const int here = SlotsOn(board_.holder(resident).shares, node);
      std::erase_if(releases, [here](const Release& release) { return release.freed < here; });
    }
    if (releases.empty() && !must) continue;
    std::vector<double> loss = must ? std::vector<double>(width, kNever) : plan.loss;
    std::vector<int> chosen(width, -1);
    for (std::size_t w = 0; w < releases.size(); ++w) {
      for (auto d = static_cast<std::size_t>(releases[w].freed); d < width; ++d) {
        const double sum =
            plan.loss[d - static_cast<std::size_t>(releases[w].freed)] + releases[w].loss;
        if (sum >= loss[d]) continue;
        loss[d] = sum;
        chosen[d] = static_cast<int>(w);
      }
    }
    plan.loss = std::move(loss);
    plan.residents.push_back(resident);
    plan.releases.push_back(std::move(releases));
    plan.chosen.push_back(std::move(chosen));
  }
  plan.enough.resize(width);
  for (std::size_t d = width; d-- > 0;) {
    const bool last = d + 1 == width;
    const bool more =
        !last && plan.loss[static_cast<std::size_t>(plan.enough[d + 1])] < plan.loss[d];
    plan.enough[d] = more ? plan.enough[d + 1] : static_cast<int>(d);
  }
  return plan;
}

bool Exchange::Free(const ReleasePlan& plan, int slots,
                    std::vector<std::pair<std::size_t, Shares>>& before) {
  auto left = static_cast<std::size_t>(slots);
  for (std::size_t r = plan.residents.size(); r-- > 0 && left > 0;) {
    const int chosen = plan.chosen[r][left];
    if (chosen < 0) continue;
    const Release& release = plan.releases[r][static_cast<std::size_t>(chosen)];
    const std::size_t resident = plan.residents[r];
    left -= static_cast<std::size_t>(release.freed);
    // Two may have been promised the same free place.
    if (!FitsNow(resident, release.shares)) {
      for (auto it = before.rbegin(); it != before.rend(); ++it) Assign(it->first, it->second);
      before.clear();
      return false;
    }
    before.emplace_back(resident, board_.holder(resident).shares);
    Assign(resident, release.shares);
  }
  return true;
}

// The job takes further slots on the node, free ones and others' there.
bool Exchange::TakeOn(std::size_t j, int node) {
  const auto n = static_cast<std::size_t>(node);
  const Holder& holder = board_.holder(j);
  if (board_.draining(n) || board_.type_of(n) != board_.type_of(holder.shares)) return false;
  const int own = SlotsOn(holder.shares, node);
  int leaving = -1;
  if (own == 0) {
    const bool may_span = std::all_of(holder.shares.begin(), holder.shares.end(),
                                      [&](const Share& s) { return board_.MaySpan(j, s.node); });
    if (!may_span) return false;
    // The job that spans nodes from there must leave.
    leaving = board_.spanning_on(node);
  }
  const int free = board_.free_on(n);
  const double now = ValueNow(j);
  const int room = std::min(board_.most_for(j, n) - own, limits_[j].most - holder.total);
  const int type = board_.type_of(n);
  const ReleasePlan plan = PlanRelease(node, j, leaving);
  Transfer best;
  for (int more = 1; more <= room; ++more) {
    const int freed = plan.enough[static_cast<std::size_t>(std::max(0, more - free))];
    const double loss = plan.loss[static_cast<std::size_t>(freed)];
    if (holder.total + more < limits_[j].least || loss == kNever) continue;
    if (!FitsSizes(*holder.job, holder.total + more)) continue;
    Shares shares = With(holder.shares, node, more);
    if (shares.size() > 1 && board_.MustBeOnOne(j, holder.total + more, type)) continue;
    const double net = ValueOf(j, shares) - now - loss;
    if (Better(net, best.net)) best = {net, freed, std::move(shares)};
  }
  if (best.shares.empty()) return false;
  std::vector<std::pair<std::size_t, Shares>> before;
  if (!Free(plan, best.freed, before)) return false;
  Assign(j, std::move(best.shares));
  return true;
}

// The job leaves where it is and takes slots on the node, free ones and others' there, who may go
// where it was.
bool Exchange::MoveTo(std::size_t j, int node) {
  const auto n = static_cast<std::size_t>(node);
  if (board_.draining(n)) return false;
  const Shares from = board_.holder(j).shares;
  const double now = ValueNow(j);
  Assign(j, {});
  const int free = board_.free_on(n);
  const int room = std::min(board_.most_for(j, n), limits_[j].most);
  const ReleasePlan plan = PlanRelease(node, j);
  Transfer best;
  for (int slots = std::max(1, limits_[j].least); slots <= room; ++slots) {
    const int freed = plan.enough[static_cast<std::size_t>(std::max(0, slots - free))];
    const double loss = plan.loss[static_cast<std::size_t>(freed)];
    if (loss == kNever || !FitsSizes(*board_.holder(j).job, slots)) continue;
    Shares shares{{node, slots}};
    const double net = ValueOf(j, shares) - now - loss;
    if (shares != from && Better(net, best.net)) best = {net, freed, std::move(shares)};
  }
  std::vector<std::pair<std::size_t, Shares>> before;
  if (best.shares.empty() || !Free(plan, best.freed, before)) {
    Assign(j, from);
    return false;
  }
  Assign(j, std::move(best.shares));
  return true;
}

// The most a holder could gain a slot by growing, were there room wherever it likes.
double Exchange::HopedFor(std::size_t j) {
  const Holder& holder = board_.holder(j);
  const double now = ValueNow(j);
  const int type = std::max(0, board_.type_of(holder.shares));
  double hoped = 0;
  if (!holder.job->sizes.empty()) {
    for (const int slots : holder.job->sizes) {
      if (slots <= holder.total || slots > limits_[j].most || !FitsSizes(*holder.job, slots)) {
        continue;
      }
      hoped = std::max(hoped, GainPerSlot(j, slots, type, now));
    }
    return hoped;
  }
  const int most = std::min(holder.total + effort_.near_counts, limits_[j].most);
  for (int slots = holder.total + 1; slots <= most; ++slots) {
    hoped = std::max(hoped, GainPerSlot(j, slots, type, now));
  }
  return hoped;
}

double Exchange::GainPerSlot(std::size_t j, int slots, int type, double now) {
  double gain = 0;
  for (const int nodes : {1, 2}) {
    if (nodes == 1 && slots > MostOnNode(j)) continue;
    const Shape shape{.nodes = nodes, .slots = slots, .type = type};
    gain = std::max(
        gain, (objective_.Value(j, shape, Move::kResize) - now) / (slots - board_.holder(j).total));
  }
  return gain;
}

bool Exchange::TakeFromOthers() {
  // Nodes by what a slot there is missed.
  std::vector<std::pair<double, int>> nodes;
  for (std::size_t n = 0; n < board_.node_count(); ++n) {
    if (board_.draining(n) || board_.capacity_of(n) == 0) continue;
    double least = board_.free_on(n) > 0 ? 0 : kNever;
    if (least > 0) {
      const ReleasePlan plan = PlanRelease(static_cast<int>(n), board_.size());
      for (std::size_t d = 1; d < plan.loss.size(); ++d) {
        least = std::min(least, plan.loss[d] / static_cast<double>(d));
      }
    }
    if (least < kNever) nodes.emplace_back(least, static_cast<int>(n));
  }
  if (nodes.empty()) return false;
  std::sort(nodes.begin(), nodes.end());
  std::vector<std::pair<double, std::size_t>> receivers;
  for (std::size_t j = 0; j < board_.size(); ++j) {
    if (!limits_[j].movable) continue;
    const bool empty = board_.holder(j).total == 0;
    if (board_.holder(j).total >= limits_[j].most ||
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
    for (const Share& share : board_.holder(j).shares) tried.push_back(share.node);
    for (const auto& [loss, node] : nodes) {
      if (tried.size() >= effort_.nodes_tried || loss >= -negated) break;
      if (SlotsOn(board_.holder(j).shares, node) == 0) tried.push_back(node);
    }
    for (const int node : tried) {
      const bool taken = board_.holder(j).total > 0 && TakeOn(j, node);
      if (taken || (effort_.relocate && MoveTo(j, node))) changed = true;
    }
  }
  return changed;
}

}  // namespace espalier
