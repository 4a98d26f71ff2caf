#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/pool_size/goodput_by_size.h"
#include "allocator/pool_size/pool_size.h"

namespace espalier::pool_size_rules {

namespace {

// Keeps the mean speedup for each slot between `low` and `high`; outside of the band it takes the
// size nearest to its middle (as Pollux's autoscaling does).
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

}  // namespace

PluginRow<PoolSizeRule> UtilityBandRow() {
  return {{.name = "utility_band",
           .summary = "keeps the speedup for each slot within a band, as Pollux does",
           .options = {{.name = "low",
                        .default_value = 0.35,
                        .most = 1,
                        .meaning = "mean speedup of a slot below which the pool shrinks"},
                       {.name = "high",
                        .default_value = 0.65,
                        .most = 1,
                        .meaning = "mean speedup of a slot above which it grows"}}},
          [](const OptionValues& options) -> absl::StatusOr<std::unique_ptr<PoolSizeRule>> {
            const double low = options["low"];
            const double high = options["high"];
            if (low > high)
              return OptionNeeds("low", absl::StrCat("at most high (", high, ")"), low);
            return std::make_unique<UtilityBand>(low, high);
          }};
}

}  // namespace espalier::pool_size_rules
