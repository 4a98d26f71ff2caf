#include "absl/strings/str_format.h"
#include "tuner/core/pruners/curve_reading.h"
#include "tuner/core/pruners/percentile_rule.h"
#include "tuner/core/pruners/pruner.h"

namespace espalier::pruners {

namespace {

// The median stopping rule (Golovin et al., Google Vizier, KDD 2017) with another part than the
// better half: a trial ends when its best value so far does not belong to the best so many percent
// of what complete trials had at the same step. Verdicts are those of Optuna's PercentilePruner,
// but for a trial that has had no number yet: it ends at once.
class PercentilePruner : public Pruner {
 public:
  explicit PercentilePruner(PercentileRule rule) : rule_(rule) {}

  PruneVerdict Judge(const PrunerInput& input) const override {
    if (input.trial.points.empty()) return {};
    if (auto reason = NoValueCounts(input.direction, input.trial)) {
      return {PruneAction::kPrune, *std::move(reason)};
    }
    const auto missed = rule_.Check(input);
    if (!missed) return {};
    return {PruneAction::kPrune,
            absl::StrFormat("%.4g, its best up to step %d, is not among the best %g %% of %d "
                            "complete trials there (needs %.4g)",
                            missed->best, missed->step, rule_.best_percent, missed->trials,
                            missed->bar)};
  }

 private:
  PercentileRule rule_;
};

}  // namespace

PluginRow<Pruner> PercentileRow() {
  std::vector<PluginOption> options = {{.name = "percentile",
                                        .default_value = 25,
                                        .most = 100,
                                        .meaning = "the best so many percent go on"}};
  for (PluginOption& option : PercentileRuleOptions()) options.push_back(option);
  return {
      {.name = "percentile",
       .summary = "ends a trial whose best value is not among the best few percent at its step",
       .options = std::move(options)},
      [](const OptionValues& values) {
        return std::make_unique<PercentilePruner>(ReadPercentileRule(values, values["percentile"]));
      }};
}

}  // namespace espalier::pruners
