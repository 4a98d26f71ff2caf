#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/pool_size/goodput_by_size.h"
#include "allocator/pool_size/pool_size.h"

namespace espalier::pool_size_rules {

namespace {

constexpr double kFirstOfAll = 1e12;  // loss before which no price counts

// The smallest pool whose estimated end meets the deadline with `margin` of the time to spare
// (RubberBand's question), and the smallest of all until it is known how much work there is;
// without a deadline or an end, the largest whose cost a unit of work is within `slack` of the
// least.
class LeastCost : public PoolSizeRule {
 public:
  LeastCost(double slack, double margin) : slack_(slack), margin_(margin) {}

  PoolSizeDecision Decide(const PoolSizeRequest& request) override {
    if (Idle(request)) return IdleDecision(request);
    GoodputBySize goodput(request);
    const bool endless = std::isinf(request.work_left_s);
    if (!(request.deadline_s > 0) || endless) return ByCost(request, goodput);
    double work_s = request.work_left_s;
    for (const Job& job : request.pool.jobs) work_s += std::max(0.0, job.work_left_s);
    const bool some_to_start =
        std::any_of(request.demand.begin(), request.demand.end(),
                    [](const auto& d) { return d.second.configurations > 0; });
    if (work_s <= 0 || (some_to_start && request.work_left_s <= 0)) {
      // More may be needed, but not less than what runs: nothing is ended on no knowledge.
      const int wanted = std::clamp(request.nodes + request.pending,
                                    LeastThatRuns(request, goodput), request.node.max_nodes);
      return {wanted, absl::StrCat(Nodes(wanted), ": trials have yet to tell how long they take"),
              SlotsGivenUp(request, goodput) * kFirstOfAll + goodput.Cost(wanted)};
    }
    return ByDeadline(request, goodput, work_s);
  }

 private:
  // Of the engine's nodes that are there and not among those that are decided on.
  static int SlotsGivenUp(const PoolSizeRequest& request, const GoodputBySize& goodput) {
    if (request.order.steps.empty()) return 0;
    return request.order.slots_there - (goodput.Slots(request.nodes) - goodput.Slots(0));
  }

  // The work at the pool's present goodput; nodes that are not there yet begin after their start.
  static double EndsIn(const PoolSizeRequest& request, GoodputBySize& goodput, int nodes,
                       double work_s) {
    const double at_first = goodput.At(std::min(nodes, request.nodes));
    const double later = goodput.At(nodes);
    const double start_s = nodes > request.nodes ? goodput.Start_s(request.nodes, nodes) : 0;
    if (at_first * start_s >= work_s) return work_s / at_first;
    if (later <= 0) return std::numeric_limits<double>::infinity();
    return start_s + (work_s - at_first * start_s) / later;
  }

  PoolSizeDecision ByDeadline(const PoolSizeRequest& request, GoodputBySize& goodput,
                              double work_s) const {
    const double within_s = request.deadline_s * (1 - margin_);
    int soonest = LeastThatRuns(request, goodput);
    for (int n = soonest; n <= request.node.max_nodes; ++n) {
      const double ends_s = EndsIn(request, goodput, n, work_s);
      if (ends_s <= within_s) {
        return {n,
                absl::StrFormat("%s: the fewest that end in time, in %.0f of %.0f s", Nodes(n),
                                ends_s, request.deadline_s),
                goodput.Cost(n) * ends_s};
      }
      if (ends_s < EndsIn(request, goodput, soonest, work_s)) soonest = n;
    }
    return {soonest,
            absl::StrFormat("%s: none surely ends within %.0f s, this ends soonest, in "
                            "%.0f s",
                            Nodes(soonest), request.deadline_s,
                            EndsIn(request, goodput, soonest, work_s)),
            kFirstOfAll * EndsIn(request, goodput, soonest, work_s)};
  }

  PoolSizeDecision ByCost(const PoolSizeRequest& request, GoodputBySize& goodput) const {
    const auto cost = [&](int n) {
      const double done = goodput.At(n);
      return done > 0 ? goodput.Cost(n) / done : std::numeric_limits<double>::infinity();
    };
    const bool by_slots = request.order.steps.empty();
    double least = std::numeric_limits<double>::infinity();
    for (int n = request.node.min_nodes; n <= request.node.max_nodes; ++n) {
      least = std::min(least, cost(n));
    }
    // The largest that costs about as little: the same price, sooner done.
    int wanted = LeastThatRuns(request, goodput);
    for (int n = wanted; n <= request.node.max_nodes; ++n) {
      if (!by_slots && goodput.At(n) <= goodput.At(wanted)) continue;
      if (std::isfinite(cost(n)) && cost(n) <= least * (1 + slack_)) wanted = n;
    }
    const std::string reason =
        by_slots ? absl::StrFormat("%s: %.2f slot-seconds for a second's work, the least is %.2f",
                                   Nodes(wanted), cost(wanted), least)
                 : absl::StrFormat("%s: an hour's work of a slot for %.3g, the least is %.3g",
                                   Nodes(wanted), cost(wanted), least);
    return {wanted, reason, cost(wanted)};
  }

  const double slack_;
  const double margin_;
};

}  // namespace

PluginRow<PoolSizeRule> LeastCostRow() {
  return {
      {.name = "least_cost",
       .summary = "the fewest nodes that finish within the studies' time limit",
       .options = {{.name = "slack",
                    .default_value = 0.1,
                    .most = 10,
                    .meaning = "without a time limit: share by which a unit of work may cost more"},
                   {.name = "margin",
                    .default_value = 0.1,
                    .most = 0.9,
                    .meaning = "share of the time until the limit that is kept in reserve"}}},
      [](const OptionValues& options) {
        return std::make_unique<LeastCost>(options["slack"], options["margin"]);
      }};
}

}  // namespace espalier::pool_size_rules
