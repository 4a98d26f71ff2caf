#include <limits>

#include "allocator/policies/policy.h"
#include "allocator/policies/yardsticks/scale_out.h"

namespace espalier::policies {

namespace {

// Throughput scaling efficiency (Or, Zhang, Freedman, MLSys 2020): a trial on k slots takes d more
// while (R(k+d) - R(k)) / (d * R(k) / k) exceeds a threshold; 1 is linear scaling. d is `step`.
// See scale_out.h for the pool.
class ScalingEfficiency : public Policy {
 public:
  ScalingEfficiency(double threshold, int step) : threshold_(threshold), step_(step) {}

  std::vector<AllocationDecision> Allocate(const Pool& pool) override {
    const StepWorth worth = [this](const ScalingStep& s) {
      // A trial that does not run on what it has cannot do worse on more.
      if (!(s.rate > 0)) return s.rate_then > 0 ? std::numeric_limits<double>::max() : 0.0;
      const double more = (s.rate_then - s.rate) / (s.slots_then - s.slots);
      return more / (s.rate / s.slots) - threshold_;
    };
    return ScaleOut(pool, step_, worth, "scaling efficiency over the threshold");
  }

 private:
  const double threshold_;
  const int step_;
};

}  // namespace

PluginRow<Policy> ScalingEfficiencyRow() {
  return {{.name = "scaling_efficiency",
           .summary = "a trial grows while its throughput scales well enough (MLSys 2020)",
           .options = {{.name = "threshold",
                        .default_value = 0.5,
                        .most = 1,
                        .meaning = "share of linear scaling that further slots must bring"},
                       StepOption()}},
          [](const OptionValues& options) {
            return std::make_unique<ScalingEfficiency>(options["threshold"],
                                                       static_cast<int>(options.Whole("step")));
          }};
}

}  // namespace espalier::policies
