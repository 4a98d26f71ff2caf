#include "allocator/policies/scaling_efficiency.h"

#include <array>
#include <limits>

#include "allocator/policies/scale_out.h"
#include "allocator/policies/settings.h"
#include "tuner/base/status.h"

namespace espalier {

namespace {

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

absl::StatusOr<std::unique_ptr<Policy>> MakeScalingEfficiency(const Options& options) {
  double threshold = 0.5;
  double step = 1;
  const std::array known = {SettingRow{"threshold", &threshold, 0, 1},
                            SettingRow{"step", &step, 1, 1024}};
  ESPALIER_RETURN_IF_ERROR(ReadSettings("scaling_efficiency", options, known));
  return std::make_unique<ScalingEfficiency>(threshold, static_cast<int>(step));
}

}  // namespace espalier
