#include "absl/strings/str_format.h"
#include "tuner/core/pruners/percentile_rule.h"
#include "tuner/core/pruners/pruner.h"

namespace espalier::pruners {

namespace {

std::string WorseThanMedian(const PercentileRule&, const PercentileRule::Missed& missed) {
  return absl::StrFormat(
      "%.4g, its best up to step %d, is worse than the median %.4g of "
      "%d complete trials there",
      missed.best, missed.step, missed.bar, missed.trials);
}

}  // namespace

// The median stopping rule (Golovin et al., Google Vizier, KDD 2017): a trial ends when its best
// value so far is worse than the median of what complete trials had at the same step. Values that
// are not numbers are passed over. Verdicts are those of Optuna's MedianPruner, but for a trial
// that has had no number yet: it ends at once, and not only after the first trials and steps.
PluginRow<Pruner> MedianRow() {
  return {{.name = "median",
           .summary = "ends a trial whose best value is worse than the median at the same step",
           .options = PercentileRuleOptions()},
          [](const OptionValues& options) {
            return MakePercentilePruner(ReadPercentileRule(options, 50), WorseThanMedian);
          }};
}

}  // namespace espalier::pruners
