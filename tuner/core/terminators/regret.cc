#include "tuner/core/samplers/gp/regret.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_format.h"
#include "tuner/core/terminators/complete.h"
#include "tuner/core/terminators/models.h"

namespace espalier::terminators {

namespace {

constexpr std::string_view kLacksError =
    "the best trial has told no standard error, neither as the figure \"standard_error\" nor by "
    "Optuna's report_cross_validation_scores: the study goes on until one has (the option "
    "\"error\" gives one for all)";

struct RegretSettings {
  std::optional<double> error{};  // in units of the values; none: that of the best trial
  std::size_t min_trials = 20;
  double best_share = 0.5;
};

// Ends a study whose best value is, by the bounds of a Gaussian process, so close to the best of
// the space that what is left is within the error of the values (Makarova et al., Automatic
// Termination for Hyperparameter Optimization, AutoML 2022). As Optuna's Terminator with
// RegretBoundEvaluator(top_trials_ratio, min_n_trials), and with StaticErrorEvaluator(error) or
// CrossValidationErrorEvaluator.
class Regret final : public Terminator {
 public:
  explicit Regret(const RegretSettings& settings) : settings_(settings) {}

  absl::Status Fits(const SearchSpace& space) const override { return CanBeModelled(space); }

  double Work(const TerminatorInput& input) const override {
    const std::size_t n = input.ended.size();
    if (n < settings_.min_trials) return 0;
    const auto share = static_cast<std::size_t>(settings_.best_share * static_cast<double>(n));
    return samplers::gp::WorkOfRegretBound(std::max(share, settings_.min_trials), input.space);
  }

  TerminatorVerdict Judge(const TerminatorInput& input) const override {
    const std::vector<const Observation*> complete = CompleteTrials(input);
    if (complete.empty() || complete.size() < settings_.min_trials) return {};
    const Observation& best = BestOf(input, complete);
    const double error = settings_.error.value_or(best.standard_error);
    if (!std::isfinite(error)) return {false, std::string(kLacksError)};
    const std::optional<double> bound = samplers::gp::RegretBound(
        input.space, input.direction, complete,
        {.best_share = settings_.best_share, .least = settings_.min_trials}, input.seed,
        input.stop);
    if (!bound || !(*bound < error) || input.stop.stop_requested()) return {};
    return {true, absl::StrFormat("after %d complete trials %.6g, of trial %d, can be bettered by "
                                  "%.3g at the most, less than %s of %.3g",
                                  complete.size(), best.value, best.trial_number, *bound,
                                  settings_.error ? "the error" : "its standard error", error)};
  }

 private:
  const RegretSettings settings_;
};

}  // namespace

PluginRow<Terminator> RegretRow() {
  return {{.name = "regret",
           .summary = "ends a study whose best value can hardly be bettered, by a Gaussian process",
           .options = {{.name = "error",
                        .open = true,
                        .meaning = "of a value, in its units; else what the best trial tells of it",
                        .optional = true},
                       MinTrialsOption(1),
                       {.name = "top_trials_ratio",
                        .default_value = 0.5,
                        .most = 1,
                        .meaning = "part of the complete trials, the best, that make the model"}}},
          [](const OptionValues& options) {
            return std::make_unique<Regret>(
                RegretSettings{.error = options.Given("error"),
                               .min_trials = static_cast<std::size_t>(options.Whole("min_trials")),
                               .best_share = options["top_trials_ratio"]});
          }};
}

}  // namespace espalier::terminators
