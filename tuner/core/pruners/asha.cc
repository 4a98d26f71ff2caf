#include "tuner/core/pruners/asha.h"

#include <array>
#include <optional>

#include "tuner/base/status.h"
#include "tuner/core/pruners/curve_reading.h"
#include "tuner/core/pruners/rungs.h"

namespace espalier {

namespace {

class Asha : public Pruner {
 public:
  explicit Asha(Rungs rungs) : rungs_(rungs) {}

  PruneVerdict Judge(const PrunerInput& input) const override {
    if (input.trial.points.empty()) return {};
    if (auto reason = NotANumber(input.trial)) return {true, *std::move(reason)};
    return StopBelowTop(rungs_, input, input.others);
  }

 private:
  Rungs rungs_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Pruner>> MakeAsha(const Options& options) {
  Rungs rungs;
  const std::array known = {CountOption{"min_steps", &rungs.min_steps, 1},
                            CountOption{"eta", &rungs.eta, 2},
                            CountOption{"max_steps", &rungs.max_steps, 0}};
  ESPALIER_RETURN_IF_ERROR(ReadOptions("asha", options, known));
  ESPALIER_RETURN_IF_ERROR(CheckEnd("asha", rungs));
  return std::make_unique<Asha>(rungs);
}

}  // namespace espalier
