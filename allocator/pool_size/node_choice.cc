#include "allocator/pool_size/node_choice.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "allocator/pool_size/goodput_by_size.h"

namespace espalier {

namespace {

constexpr double kPriceOfThoseThere = 0.8;  // of what another one like it would count
constexpr double kMostLost = 0.9;           // share of a node's time, at most, to preemptions
constexpr int kStepsInVain = 8;             // nodes that add nothing before no more are tried
constexpr double kNoGain = 1e-9;
constexpr double kAsGoodAsFree = 1e-9;

// How fast slots of the type are beside those of other types: the mean over the trials whose models
// tell it.
double SpeedOf(const std::string& gpu_type, const Pool& pool, SpeedupCache& speedups) {
  double logs = 0;
  int known = 0;
  for (const Job& job : pool.jobs) {
    if (job.goodput_by_gpu_type.empty()) continue;
    const int replicas = MinSlots(job);
    const double speed = speedups.CurveOf(job)->At(1, replicas, gpu_type);
    if (!(speed > 0) || !std::isfinite(speed)) continue;
    logs += std::log(speed / replicas);
    ++known;
  }
  return known > 0 ? std::exp(logs / known) : 1;
}

// The orders in which nodes of several templates could be added, each by indices of templates.
class Orders {
 public:
  using Order = std::vector<std::size_t>;

  Orders(const PoolSizeRequest& request, const std::vector<EngineNodes>& templates,
         GoodputMemo& memo)
      : request_(request), templates_(templates), memo_(memo) {
    const double left_s = TimeLeft(request);
    const bool free = std::all_of(templates.begin(), templates.end(), [](const EngineNodes& of) {
      return of.node.price_per_hour == 0;
    });
    bool some_room = false;
    for (const EngineNodes& of : templates) {
      const NodeTemplate& node = of.node;
      const double lost = std::min(kMostLost, node.preemptions_per_hour * node.start_s / 3600);
      prices_.push_back((free ? node.slots : node.price_per_hour) / (1 - lost) /
                        SpeedOf(node.gpu_type, request.pool, memo.speedups));
      const bool in_vain = of.rests || node.start_s >= left_s;
      room_.push_back(in_vain ? std::min(Had(of), node.max_nodes) : node.max_nodes);
      some_room = some_room || room_.back() > 0;
    }
    for (std::size_t t = 0; t < templates.size(); ++t) {
      const NodeTemplate& node = templates[t].node;
      room_[t] = some_room ? std::max(room_[t], node.min_nodes) : node.max_nodes;
    }
  }

  // Those of each template alone, and the one by work for the price.
  std::vector<Order> All() const {
    std::vector<Order> all;
    for (std::size_t t = 0; t < templates_.size(); ++t) {
      Order order = Least();
      order.insert(order.end(), static_cast<std::size_t>(room_[t] - templates_[t].node.min_nodes),
                   t);
      if (!order.empty()) all.push_back(std::move(order));
    }
    all.push_back(ByWorkForThePrice());
    return all;
  }

  NodeOrder Described(const Order& order) const {
    NodeOrder described;
    std::vector<int> taken(templates_.size());
    for (const std::size_t t : order) {
      const NodeTemplate& node = templates_[t].node;
      described.steps.push_back({node.slots, PriceOf(t, taken[t]), node.start_s});
      ++taken[t];
    }
    for (std::size_t t = 0; t < templates_.size(); ++t) {
      const NodeTemplate& node = templates_[t].node;
      described.slots_there += templates_[t].nodes * node.slots;
      described.slot_price = std::max(described.slot_price, prices_[t] / node.slots);
    }
    return described;
  }

  // How many of the first nodes are there, or were asked for too.
  int FirstOf(const Order& order, bool with_pending) const {
    std::vector<int> taken(templates_.size());
    int first = 0;
    for (const std::size_t t : order) {
      const EngineNodes& of = templates_[t];
      if (taken[t]++ >= of.nodes + (with_pending ? of.pending : 0)) break;
      ++first;
    }
    return first;
  }

 private:
  static int Had(const EngineNodes& of) { return of.nodes + of.pending; }

  double PriceOf(std::size_t t, int index) const {
    return prices_[t] * (index < Had(templates_[t]) ? kPriceOfThoseThere : 1);
  }

  Order Least() const {
    Order least;
    for (std::size_t t = 0; t < templates_.size(); ++t) {
      least.insert(least.end(), static_cast<std::size_t>(templates_[t].node.min_nodes), t);
    }
    return least;
  }

  Order ByWorkForThePrice() const {
    Order order = Least();
    std::vector<int> taken(templates_.size());
    std::map<int, int> by_slots;
    const auto take = [&](std::size_t t) {
      ++taken[t];
      ++by_slots[templates_[t].node.slots];
    };
    for (const std::size_t t : order) take(t);
    for (int in_vain = 0; in_vain < kStepsInVain;) {
      const double had = GoodputOn(request_, by_slots, memo_);
      std::size_t best = templates_.size();
      std::pair<double, double> most;  // work for the price, and slots for it
      for (std::size_t t = 0; t < templates_.size(); ++t) {
        if (taken[t] >= room_[t]) continue;
        std::map<int, int> with = by_slots;
        ++with[templates_[t].node.slots];
        const double gain = GoodputOn(request_, with, memo_) - had;
        const double price = std::max(PriceOf(t, taken[t]), kAsGoodAsFree);
        const std::pair merit(gain > kNoGain ? gain / price : 0.0,
                              templates_[t].node.slots / price);
        if (best == templates_.size() || merit > most) std::tie(best, most) = std::pair(t, merit);
      }
      if (best == templates_.size()) break;
      in_vain = most.first > 0 ? 0 : in_vain + 1;
      order.push_back(best);
      take(best);
    }
    return order;
  }

  const PoolSizeRequest& request_;
  const std::vector<EngineNodes>& templates_;
  GoodputMemo& memo_;
  std::vector<double> prices_;  // an hour, of each template
  std::vector<int> room_;       // nodes at most, of each template
};

// "spot 2, on-demand 1, 1.6 an hour".
std::string Told(const std::vector<EngineNodes>& templates, const std::vector<int>& nodes) {
  std::vector<std::string> parts;
  double price = 0;
  for (std::size_t t = 0; t < templates.size(); ++t) {
    price += nodes[t] * templates[t].node.price_per_hour;
    if (nodes[t] > 0) parts.push_back(absl::StrCat(templates[t].node.name, " ", nodes[t]));
  }
  return parts.empty() ? ""
                       : absl::StrFormat(" (%s, %g an hour)", absl::StrJoin(parts, ", "), price);
}

}  // namespace

NodeChoice ChooseNodes(PoolSizeRule& rule, PoolSizeRequest request,
                       const std::vector<EngineNodes>& templates) {
  request.node = templates.front().node;
  request.nodes = templates.front().nodes;
  request.pending = templates.front().pending;
  if (templates.size() == 1) {
    PoolSizeDecision decision = rule.Decide(request);
    return {{decision.nodes}, std::move(decision.reason)};
  }
  request.node.min_nodes = 0;
  for (const EngineNodes& of : templates) request.node.min_nodes += of.node.min_nodes;
  const auto memo = std::make_shared<GoodputMemo>();
  // Slots of other nodes follow from what is there.
  request.order.steps.emplace_back();
  for (const EngineNodes& of : templates) request.order.slots_there += of.nodes * of.node.slots;
  const PoolSizeRequest plain = request;
  const Orders orders(plain, templates, *memo);
  NodeChoice choice;
  double least = std::numeric_limits<double>::infinity();
  for (const Orders::Order& order : orders.All()) {
    request.order = orders.Described(order);
    request.order.known = memo;
    request.node.max_nodes = static_cast<int>(order.size());
    request.nodes = orders.FirstOf(order, false);
    request.pending = orders.FirstOf(order, true) - request.nodes;
    PoolSizeDecision decision = rule.Decide(request);
    if (!choice.nodes.empty() && !(decision.loss < least)) continue;
    least = decision.loss;
    choice.nodes.assign(templates.size(), 0);
    for (int n = 0; n < decision.nodes; ++n) ++choice.nodes[order[static_cast<std::size_t>(n)]];
    choice.reason = decision.reason + Told(templates, choice.nodes);
  }
  return choice;
}

}  // namespace espalier
