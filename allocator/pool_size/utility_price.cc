#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/pool_size/goodput_by_size.h"
#include "allocator/pool_size/pool_size.h"

namespace espalier::pool_size_rules {

namespace {

constexpr int kLump = 8;  // nodes that may have to be added at once before any of them pays

// Grows while the next node's slots add at least `min_utility` of what they would add if used in
// full (Or, Zhang, Freedman, MLSys 2020: throughput scaling efficiency against price), weighed by
// the share of the trials' time that is left after its start-up. Where growth comes in lumps, so
// does the pool's: several nodes at once. Shrinks when its last node adds less than half of that.
class UtilityPrice : public PoolSizeRule {
 public:
  explicit UtilityPrice(double min_utility) : min_utility_(min_utility) {}

  PoolSizeDecision Decide(const PoolSizeRequest& request) override {
    if (Idle(request)) return IdleDecision(request);
    GoodputBySize goodput(request);
    PoolSizeDecision decision = Decide(request, goodput);
    // Slots that are used as much as they have to be are worth what the dearest cost.
    decision.loss = goodput.Cost(decision.nodes) -
                    request.order.slot_price / min_utility_ * goodput.At(decision.nodes);
    return decision;
  }

 private:
  PoolSizeDecision Decide(const PoolSizeRequest& request, GoodputBySize& goodput) const {
    const NodeTemplate& node = request.node;
    const int least = LeastThatRuns(request, goodput);
    const int now = std::clamp(request.nodes + request.pending, least, node.max_nodes);
    const double left_s = TimeLeft(request);
    const int largest = Grown(goodput, now, node.max_nodes, left_s);
    if (largest > request.nodes + request.pending) {
      return {largest, Reason(goodput, request, largest, left_s)};
    }
    // Half the threshold: what was just worth starting is not at once worth ending.
    int wanted = now;
    while (wanted > least && Added(goodput, wanted - 1, wanted) < 0.5 * min_utility_) --wanted;
    if (wanted < now) {
      return {wanted, absl::StrFormat(
                          "%s: one more adds %.2f of a full node's work, less than %.2f",
                          Nodes(wanted), Added(goodput, wanted, wanted + 1), 0.5 * min_utility_)};
    }
    return {wanted, absl::StrFormat("%s: the next would add %.2f of a full node's work",
                                    Nodes(wanted), Worth(goodput, wanted, wanted + 1, left_s))};
  }

  // How far growth goes on paying.
  int Grown(GoodputBySize& goodput, int nodes, int most, double left_s) const {
    for (int more = 1; more <= kLump && nodes + more <= most;) {
      if (Worth(goodput, nodes, nodes + more, left_s) >= min_utility_) {
        nodes += more;
        more = 1;
      } else {
        ++more;
      }
    }
    return nodes;
  }

  std::string Reason(GoodputBySize& goodput, const PoolSizeRequest& request, int wanted,
                     double left_s) const {
    const int had = request.nodes + request.pending;
    const double each = Worth(goodput, had, wanted, left_s);
    if (each < min_utility_) return absl::StrCat(Nodes(wanted), ": the fewest on which trials run");
    return absl::StrFormat(
        "%s: %.2f of a full node's work from each that is added, at least %.2f "
        "is worth its price",
        Nodes(wanted), each, min_utility_);
  }

  // The share that more nodes would add of what they would add if they were used in full.
  static double Added(GoodputBySize& goodput, int nodes, int more) {
    const int slots = goodput.Slots(more) - goodput.Slots(nodes);
    return slots > 0 ? (goodput.At(more) - goodput.At(nodes)) / slots : 0;
  }

  // The same, if they are asked for now: they are of use only after their start.
  static double Worth(GoodputBySize& goodput, int nodes, int more, double left_s) {
    const double started =
        std::isinf(left_s) ? 1 : std::max(0.0, 1 - goodput.Start_s(nodes, more) / left_s);
    return started * Added(goodput, nodes, more);
  }

  const double min_utility_;
};

}  // namespace

PluginRow<PoolSizeRule> UtilityPriceRow() {
  return {{.name = "utility_price",
           .summary = "grows while another node adds at least half of a full node's work",
           .options = {{.name = "min_utility",
                        .default_value = 0.5,
                        .least = 0.01,
                        .most = 1,
                        .meaning = "share of a full node's work that another node must add"}}},
          [](const OptionValues& options) {
            return std::make_unique<UtilityPrice>(options["min_utility"]);
          }};
}

}  // namespace espalier::pool_size_rules
