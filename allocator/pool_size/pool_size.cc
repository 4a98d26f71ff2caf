#include "allocator/pool_size/pool_size.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "allocator/policies/settings.h"
#include "tuner/base/status.h"

namespace espalier {

namespace {

constexpr int kLump = 8;  // nodes that may have to be added at once before any of them pays

bool Idle(const PoolSizeRequest& request) {
  const bool waiting = std::any_of(request.demand.begin(), request.demand.end(),
                                   [](const auto& d) { return d.second.configurations > 0; });
  return request.pool.jobs.empty() && !waiting;
}

std::string Nodes(int n) { return n == 1 ? "1 node" : absl::StrCat(n, " nodes"); }

PoolSizeDecision IdleDecision(const PoolSizeRequest& request) {
  const int least = request.node.min_nodes;
  return {least,
          absl::StrCat(Nodes(least), ": no trials and nothing to try, the least there may be")};
}

// The smallest pool on which something runs; the least there may be if nothing ever does.
int LeastThatRuns(const PoolSizeRequest& request, GoodputBySize& goodput) {
  for (int n = request.node.min_nodes; n <= request.node.max_nodes; ++n) {
    if (goodput.At(n) > 0) return n;
  }
  return request.node.min_nodes;
}

// Seconds for which the trials will go on, about: the most that one of them has left. Infinite
// where nobody knows, or configurations wait.
double TimeLeft(const PoolSizeRequest& request) {
  double most_s = 0;
  for (const auto& [id, demand] : request.demand) {
    if (demand.configurations > 0) return std::numeric_limits<double>::infinity();
  }
  for (const Job& job : request.pool.jobs) {
    if (!(job.work_left_s > 0)) return std::numeric_limits<double>::infinity();
    most_s = std::max(most_s, job.work_left_s);
  }
  return most_s;
}

class UtilityPrice : public PoolSizeRule {
 public:
  explicit UtilityPrice(double min_utility) : min_utility_(min_utility) {}

  PoolSizeDecision Decide(const PoolSizeRequest& request) override {
    if (Idle(request)) return IdleDecision(request);
    GoodputBySize goodput(request);
    const NodeTemplate& node = request.node;
    const int least = LeastThatRuns(request, goodput);
    const int now = std::clamp(request.nodes + request.pending, least, node.max_nodes);
    // Of a node that is asked for now, only what comes after its start is of use.
    const double left_s = TimeLeft(request);
    const double worth = std::isinf(left_s) ? 1 : std::max(0.0, 1 - node.start_s / left_s);
    const int largest = Grown(goodput, now, node, worth);
    if (largest > request.nodes + request.pending) {
      return {largest, Reason(goodput, request, largest, worth)};
    }
    // Half the threshold: what was just worth starting is not at once worth ending.
    int wanted = now;
    while (wanted > least && Added(goodput, wanted - 1, wanted, node) < 0.5 * min_utility_) {
      --wanted;
    }
    if (wanted < now) {
      return {wanted,
              absl::StrFormat("%s: one more adds %.2f of a full node's work, less than %.2f",
                              Nodes(wanted), Added(goodput, wanted, wanted + 1, node),
                              0.5 * min_utility_)};
    }
    return {wanted,
            absl::StrFormat("%s: the next would add %.2f of a full node's work", Nodes(wanted),
                            worth * Added(goodput, wanted, wanted + 1, node))};
  }

 private:
  // How far growth goes on paying.
  int Grown(GoodputBySize& goodput, int nodes, const NodeTemplate& node, double worth) const {
    for (int more = 1; more <= kLump && nodes + more <= node.max_nodes;) {
      if (worth * Added(goodput, nodes, nodes + more, node) >= min_utility_) {
        nodes += more;
        more = 1;
      } else {
        ++more;
      }
    }
    return nodes;
  }

  std::string Reason(GoodputBySize& goodput, const PoolSizeRequest& request, int wanted,
                     double worth) const {
    const int had = request.nodes + request.pending;
    const double each = worth * Added(goodput, had, wanted, request.node);
    if (each < min_utility_) return absl::StrCat(Nodes(wanted), ": the fewest on which trials run");
    return absl::StrFormat(
        "%s: %.2f of a full node's work from each that is added, at least %.2f "
        "is worth its price",
        Nodes(wanted), each, min_utility_);
  }

  // Of what more nodes would add if used in full.
  static double Added(GoodputBySize& goodput, int nodes, int more, const NodeTemplate& node) {
    return (goodput.At(more) - goodput.At(nodes)) / ((more - nodes) * node.slots);
  }

  const double min_utility_;
};

class UtilityBand : public PoolSizeRule {
 public:
  UtilityBand(double low, double high) : low_(low), high_(high) {}

  PoolSizeDecision Decide(const PoolSizeRequest& request) override {
    if (Idle(request)) return IdleDecision(request);
    GoodputBySize goodput(request);
    const NodeTemplate& node = request.node;
    const int least = LeastThatRuns(request, goodput);
    const int now = std::clamp(request.nodes + request.pending, least, node.max_nodes);
    const double utility = Utility(goodput, now);
    if (utility >= low_ && utility <= high_) {
      return {now, absl::StrFormat("%s: utility %.2f is within %.2f to %.2f", Nodes(now), utility,
                                   low_, high_)};
    }
    const double middle = (low_ + high_) / 2;
    int best = now;
    for (int n = least; n <= node.max_nodes; ++n) {
      if (std::abs(Utility(goodput, n) - middle) < std::abs(Utility(goodput, best) - middle)) {
        best = n;
      }
    }
    return {best, absl::StrFormat("%s: utility %.2f instead of %.2f, nearest to %.2f", Nodes(best),
                                  Utility(goodput, best), utility, middle)};
  }

 private:
  // Without any slot, all that might run is missed: above every band.
  static double Utility(GoodputBySize& goodput, int nodes) {
    return goodput.Slots(nodes) == 0 ? 1 : goodput.At(nodes) / goodput.Slots(nodes);
  }

  const double low_;
  const double high_;
};

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
      return {wanted, absl::StrCat(Nodes(wanted), ": trials have yet to tell how long they take")};
    }
    return ByDeadline(request, goodput, work_s);
  }

 private:
  // The work at the pool's present goodput; nodes that are not there yet begin after their start.
  static double EndsIn(const PoolSizeRequest& request, GoodputBySize& goodput, int nodes,
                       double work_s) {
    const double at_first = goodput.At(std::min(nodes, request.nodes));
    const double later = goodput.At(nodes);
    const double start_s = nodes > request.nodes ? request.node.start_s : 0;
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
        return {n, absl::StrFormat("%s: the fewest that end in time, in %.0f of %.0f s", Nodes(n),
                                   ends_s, request.deadline_s)};
      }
      if (ends_s < EndsIn(request, goodput, soonest, work_s)) soonest = n;
    }
    return {soonest, absl::StrFormat("%s: none surely ends within %.0f s, this ends soonest, in "
                                     "%.0f s",
                                     Nodes(soonest), request.deadline_s,
                                     EndsIn(request, goodput, soonest, work_s))};
  }

  PoolSizeDecision ByCost(const PoolSizeRequest& request, GoodputBySize& goodput) const {
    const auto cost = [&](int n) {
      const double done = goodput.At(n);
      return done > 0 ? goodput.Slots(n) / done : std::numeric_limits<double>::infinity();
    };
    double least = std::numeric_limits<double>::infinity();
    for (int n = request.node.min_nodes; n <= request.node.max_nodes; ++n) {
      least = std::min(least, cost(n));
    }
    // The largest that costs about as little: the same price, sooner done.
    int wanted = LeastThatRuns(request, goodput);
    for (int n = wanted; n <= request.node.max_nodes; ++n) {
      if (std::isfinite(cost(n)) && cost(n) <= least * (1 + slack_)) wanted = n;
    }
    return {wanted, absl::StrFormat("%s: %.2f slot-seconds for a second's work, the least is %.2f",
                                    Nodes(wanted), cost(wanted), least)};
  }

  const double slack_;
  const double margin_;
};

absl::StatusOr<std::unique_ptr<PoolSizeRule>> MakeUtilityPrice(const Options& options) {
  double min_utility = 0.5;
  const std::array known = {SettingRow{"min_utility", &min_utility, 0.01, 1}};
  ESPALIER_RETURN_IF_ERROR(ReadSettings("utility_price", options, known));
  return std::make_unique<UtilityPrice>(min_utility);
}

absl::StatusOr<std::unique_ptr<PoolSizeRule>> MakeUtilityBand(const Options& options) {
  double low = 0.35;
  double high = 0.65;
  const std::array known = {SettingRow{"low", &low, 0, 1}, SettingRow{"high", &high, 0, 1}};
  ESPALIER_RETURN_IF_ERROR(ReadSettings("utility_band", options, known));
  if (low > high) {
    return absl::InvalidArgumentError(
        absl::StrCat("rule \"utility_band\": low must be at most high, got ", low, " and ", high));
  }
  return std::make_unique<UtilityBand>(low, high);
}

absl::StatusOr<std::unique_ptr<PoolSizeRule>> MakeLeastCost(const Options& options) {
  double slack = 0.1;
  double margin = 0.1;
  const std::array known = {SettingRow{"slack", &slack, 0, 10},
                            SettingRow{"margin", &margin, 0, 0.9}};
  ESPALIER_RETURN_IF_ERROR(ReadSettings("least_cost", options, known));
  return std::make_unique<LeastCost>(slack, margin);
}

struct RuleRow {
  std::string_view name;
  absl::StatusOr<std::unique_ptr<PoolSizeRule>> (*make)(const Options&);
};

constexpr std::array kRules = {RuleRow{"utility_price", MakeUtilityPrice},
                               RuleRow{"utility_band", MakeUtilityBand},
                               RuleRow{"least_cost", MakeLeastCost}};

}  // namespace

std::vector<std::string> PoolSizeRuleNames() {
  std::vector<std::string> names;
  for (const RuleRow& row : kRules) names.emplace_back(row.name);
  return names;
}

absl::StatusOr<std::unique_ptr<PoolSizeRule>> MakePoolSizeRule(std::string_view name,
                                                               const Options& options) {
  for (const RuleRow& row : kRules) {
    if (row.name == name) return row.make(options);
  }
  return absl::InvalidArgumentError(absl::StrCat("pool size rule \"", std::string(name),
                                                 "\" is unknown; known are ",
                                                 absl::StrJoin(PoolSizeRuleNames(), ", ")));
}

int GoodputBySize::Slots(int nodes) const {
  // The engine's own are listed last by whoever asks: only their number matters here.
  int total = 0;
  for (const NodeCapacity& node : request_->pool.nodes) {
    if (!node.draining) total += std::max(0, node.slots);
  }
  return std::max(0, total - request_->nodes * request_->node.slots) + nodes * request_->node.slots;
}

double GoodputBySize::At(int nodes) {
  const auto [it, fresh] = known_.try_emplace(nodes, 0.0);
  if (!fresh) return it->second;
  Pool pool = request_->pool;
  pool.nodes.clear();
  const int others = Slots(0);
  std::int64_t id = 0;
  if (others > 0) pool.nodes.push_back({.id = NodeId(++id), .slots = others});
  for (int n = 0; n < nodes; ++n) {
    pool.nodes.push_back({.id = NodeId(++id), .slots = request_->node.slots});
  }
  double sum = 0;
  for (const auto& [study, part] : DivideAmongStudies(pool, speedups_, request_->demand, 1)) {
    sum += part.goodput;
  }
  return it->second = sum;
}

}  // namespace espalier
