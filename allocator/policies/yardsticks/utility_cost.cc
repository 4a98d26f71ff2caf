#include <limits>

#include "allocator/policies/policy.h"
#include "allocator/policies/yardsticks/scale_out.h"

namespace espalier::policies {

namespace {

// Utility against cost (Or, Zhang, Freedman, MLSys 2020): a trial on k slots takes d more while
// what its earlier end is worth exceeds what the slots cost more until then,
// U(T(k+d)) - U(T(k)) > P * ((k+d) * T(k+d) - k * T(k)) with T(k) = work left / R(k). Utility is
// linear here, U(T) = -utility * T, so that the work left divides out. P is `price`, d
// is `step`. See scale_out.h for the pool.
class UtilityCost : public Policy {
 public:
  UtilityCost(double utility, double price, int step)
      : utility_(utility), price_(price), step_(step) {}

  std::vector<AllocationDecision> Allocate(const Pool& pool) override {
    const StepWorth worth = [this](const ScalingStep& s) {
      constexpr double kMost = std::numeric_limits<double>::max();
      if (!(s.rate > 0)) return s.rate_then > 0 ? kMost : 0.0;
      if (!(s.rate_then > 0)) return -kMost;
      // Times of one unit of work, relative to the time now.
      const double then = s.rate / s.rate_then;
      return utility_ * (1 - then) - price_ * (s.slots_then * then - s.slots);
    };
    return ScaleOut(pool, step_, worth, "utility less cost");
  }

 private:
  const double utility_;
  const double price_;
  const int step_;
};

}  // namespace

PluginRow<Policy> UtilityCostRow() {
  return {
      {.name = "utility_cost",
       .summary = "a trial grows while ending earlier is worth its slots' price (MLSys 2020)",
       .options = {{.name = "utility", .default_value = 4, .meaning = "value of a second saved"},
                   {.name = "price", .default_value = 1, .meaning = "price of a slot-second"},
                   StepOption()}},
      [](const OptionValues& options) {
        return std::make_unique<UtilityCost>(options["utility"], options["price"],
                                             static_cast<int>(options.Whole("step")));
      }};
}

}  // namespace espalier::policies
