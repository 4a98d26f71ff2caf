#include <string>
#include <utility>
#include <vector>

#include "tuner/core/promise/promise.h"
#include "tuner/core/pruners/pruner.h"

namespace espalier::pruners {

namespace {

// By rank first, by promise then. Before step promise_from ASHA's rungs cull the many at equal
// steps, which needs no model and no curve. From there on the promise model ends those that have
// little chance beside the others: rank says less than their curves, and the few long runs at the
// end are most of a study's work. By default promise_from is the second rung, so that only the
// first is by rank; trials that this let through may be risked more freely than by "promise" alone.
class AshaPromise : public Pruner {
 public:
  AshaPromise(std::unique_ptr<Pruner> asha, std::unique_ptr<Pruner> promise, double from)
      : asha_(std::move(asha)), promise_(std::move(promise)), from_(from) {}

  PruneVerdict Judge(const PrunerInput& input) const override {
    if (input.trial.points.empty()) return {};
    const bool by_rank = static_cast<double>(input.trial.points.back().step) < from_;
    return by_rank ? asha_->Judge(input) : promise_->Judge(input);
  }

 private:
  std::unique_ptr<Pruner> asha_;
  std::unique_ptr<Pruner> promise_;
  double from_;  // a step
};

// One of the pruners that it is made of, with the options that it has from that.
absl::StatusOr<std::unique_ptr<Pruner>> MakePart(std::string_view name, const OptionValues& options,
                                                 const std::vector<std::string>& shared) {
  Options own;
  for (const std::string& option : shared) own[option] = options[option];
  return MakePruner(name, own);
}

}  // namespace

PluginRow<Pruner> AshaPromiseRow() {
  return {{.name = "asha_promise",
           .summary = "ends trials at ASHA's first rung, and then by the promise model",
           .options = {{.name = "promise_from",
                        .default_value = 0,
                        .whole = true,
                        .meaning = "first step that goes by promise; 0: the second rung"},
                       {.name = "min_steps",
                        .default_value = 1,
                        .least = 1,
                        .whole = true,
                        .meaning = "first rung"},
                       {.name = "eta",
                        .default_value = 3,
                        .least = 2,
                        .whole = true,
                        .meaning = "rungs are so many times apart; the best 1/eta of a rung go on"},
                       {.name = "threshold",
                        .default_value = 0.3,
                        .most = 1,
                        .open = true,
                        .meaning = "chance to end among the best k below which a trial must be"},
                       {.name = "risk",
                        .default_value = 0.16,
                        .most = 1,
                        .open = true,
                        .meaning =
                            "chance of the best k that may be lost with all such trials together"},
                       {.name = "cost_weight",
                        .default_value = 0.5,
                        .most = 1,
                        .open = true,
                        .meaning = "how much it counts that a trial is slow"},
                       {.name = "min_trials",
                        .default_value = 3,
                        .least = 2,
                        .whole = true,
                        .meaning = "trials that must have reported before the first verdict"},
                       {.name = "best_k",
                        .default_value = 0,
                        .most = kMostBestK,
                        .whole = true,
                        .meaning = "k of the best that are compared with; 0: the study's own"}}},
          [](const OptionValues& options) -> absl::StatusOr<std::unique_ptr<Pruner>> {
            ESPALIER_ASSIGN_OR_RETURN(std::unique_ptr<Pruner> asha,
                                      MakePart("asha", options, {"min_steps", "eta"}));
            ESPALIER_ASSIGN_OR_RETURN(
                std::unique_ptr<Pruner> promise,
                MakePart("promise", options,
                         {"threshold", "risk", "cost_weight", "min_trials", "best_k"}));
            double from = options["promise_from"];
            if (from == 0) from = options["min_steps"] * options["eta"];
            return std::make_unique<AshaPromise>(std::move(asha), std::move(promise), from);
          }};
}

}  // namespace espalier::pruners
