#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "tuner/core/pruners/promise_options.h"
#include "tuner/core/pruners/pruner.h"
#include "tuner/core/pruners/rungs.h"

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

// The options that it has from each of the two, as they are there.
constexpr std::string_view kOfAsha[] = {"min_steps", "eta"};
constexpr std::string_view kOfPromise[] = {"threshold", "risk", "cost_weight", "min_trials",
                                           "best_k"};

void AddOptions(const std::vector<PluginOption>& all, std::span<const std::string_view> shared,
                std::vector<PluginOption>& options) {
  for (const std::string_view name : shared) {
    const auto found = std::ranges::find(all, name, &PluginOption::name);
    ESPALIER_CHECK(found != all.end(), "the pruner has the option");
    options.push_back(*found);
  }
}

absl::StatusOr<std::unique_ptr<Pruner>> MakePart(std::string_view name, const OptionValues& options,
                                                 std::span<const std::string_view> shared) {
  Options own;
  for (const std::string_view option : shared) own[std::string(option)] = options[option];
  return MakePruner(name, own);
}

}  // namespace

PluginRow<Pruner> AshaPromiseRow() {
  std::vector<PluginOption> options = {
      {.name = "promise_from",
       .default_value = 0,
       .whole = true,
       .meaning = "first step judged by promise; 0: the second rung"}};
  AddOptions(RungOptions(), kOfAsha, options);
  AddOptions(PromisePrunerOptions(), kOfPromise, options);
  std::ranges::find(options, "risk", &PluginOption::name)->default_value = 0.16;
  return {{.name = "asha_promise",
           .summary = "ends trials at ASHA's first rung, and then by the promise model",
           .options = std::move(options)},
          [](const OptionValues& values) -> absl::StatusOr<std::unique_ptr<Pruner>> {
            ESPALIER_ASSIGN_OR_RETURN(std::unique_ptr<Pruner> asha,
                                      MakePart("asha", values, kOfAsha));
            ESPALIER_ASSIGN_OR_RETURN(std::unique_ptr<Pruner> promise,
                                      MakePart("promise", values, kOfPromise));
            double from = values["promise_from"];
            if (from == 0) from = values["min_steps"] * values["eta"];
            return std::make_unique<AshaPromise>(std::move(asha), std::move(promise), from);
          }};
}

}  // namespace espalier::pruners
