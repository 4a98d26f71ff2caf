#include "absl/strings/str_format.h"
#include "tuner/core/pruners/percentile_rule.h"
#include "tuner/core/pruners/pruner.h"

namespace espalier::pruners {

namespace {

std::string NotAmongTheBest(const PercentileRule& rule, const PercentileRule::Missed& missed) {
  return absl::StrFormat(
      "%.4g, its best up to step %d, is not among the best %g %% of %d "
      "complete trials there (needs %.4g)",
      missed.best, missed.step, rule.best_percent, missed.trials, missed.bar);
}

}  // namespace

// The median stopping rule (Golovin et al., Google Vizier, KDD 2017) with another part than the
// better half: a trial ends when its best value so far does not belong to the best so many percent
// of what complete trials had at the same step. Verdicts are those of Optuna's PercentilePruner,
// but for a trial that has had no number yet: it ends at once.
PluginRow<Pruner> PercentileRow() {
  std::vector<PluginOption> options = {{.name = "percentile",
                                        .default_value = 25,
                                        .most = 100,
                                        .meaning = "the best so many percent go on"}};
  for (PluginOption& option : PercentileRuleOptions()) options.push_back(option);
  return {{.name = "percentile",
           .summary = "ends a trial whose best value is not among the best few percent at its step",
           .options = std::move(options)},
          [](const OptionValues& values) {
            return MakePercentilePruner(ReadPercentileRule(values, values["percentile"]),
                                        NotAmongTheBest);
          }};
}

}  // namespace espalier::pruners
