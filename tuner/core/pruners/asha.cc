#include <optional>

#include "tuner/core/pruners/curve_reading.h"
#include "tuner/core/pruners/pruner.h"
#include "tuner/core/pruners/rungs.h"

namespace espalier::pruners {

namespace {

// Asynchronous successive halving (Li et al., MLSys 2020) in its stopping form: rungs at min_steps
// times the powers of eta, and a trial that reaches a rung goes on if it is among the best 1/eta of
// those that have reached it so far (at least one, ties go on). No trial waits: while fewer than
// eta trials have reached a rung, all go on. A trial that reports rarely is judged by its first
// value at or after the rung; one that is not a number there ends it, and so do none but such
// values. Rungs at or beyond max_steps are left out, since there a trial ends anyway.
class Asha : public Pruner {
 public:
  explicit Asha(Rungs rungs) : rungs_(rungs) {}

  PruneVerdict Judge(const PrunerInput& input) const override {
    if (input.trial.points.empty()) return {};
    if (auto reason = NoValueCounts(input.direction, input.trial)) {
      return {PruneAction::kPrune, *std::move(reason)};
    }
    return StopBelowTop(rungs_, input, input.others);
  }

 private:
  Rungs rungs_;
};

}  // namespace

PluginRow<Pruner> AshaRow() {
  return {{.name = "asha",
           .summary = "ends a trial that is not among the best 1/eta at a rung (MLSys 2020)",
           .options = RungOptions()},
          [](const OptionValues& options) -> absl::StatusOr<std::unique_ptr<Pruner>> {
            ESPALIER_ASSIGN_OR_RETURN(const Rungs rungs, ReadRungs(options));
            return std::make_unique<Asha>(rungs);
          }};
}

}  // namespace espalier::pruners
