#include "allocator/policies/utility_cost.h"

#include <array>
#include <limits>

#include "allocator/policies/scale_out.h"
#include "allocator/policies/settings.h"
#include "tuner/base/status.h"

namespace espalier {

namespace {

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

absl::StatusOr<std::unique_ptr<Policy>> MakeUtilityCost(const Options& options) {
  double utility = 4;
  double price = 1;
  double step = 1;
  const std::array known = {SettingRow{"utility", &utility}, SettingRow{"price", &price},
                            SettingRow{"step", &step, 1, 1024}};
  ESPALIER_RETURN_IF_ERROR(ReadSettings("utility_cost", options, known));
  return std::make_unique<UtilityCost>(utility, price, static_cast<int>(step));
}

}  // namespace espalier
