#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/random.h"
#include "tuner/core/samplers/gp/regret.h"
#include "tuner/core/terminators/complete.h"
#include "tuner/core/terminators/models.h"

namespace espalier::terminators {

namespace {

// Of the points drawn for the threshold, so that it stays what it is.
constexpr std::uint64_t kSeedOfThreshold = 0x656d6d72;

struct EmmrSettings {
  std::optional<double> error{};  // in standard deviations; none: the threshold
  std::size_t min_trials = 20;
  samplers::gp::RegretChangeSettings model{};
  // Of the threshold:
  std::size_t warm_up_trials = 10;  // that come first: most samplers draw them at random
  std::size_t initial_trials = 20;  // after them: the bounds of the first, of the first two, ...
  double ratio = 0.01;              // of their median
};

// Ends a study whose newest trial can, by a Gaussian process, hardly have changed the expected
// minimum simple regret (Ishibashi et al., A stopping criterion for Bayesian optimization by the
// gap of expected minimum simple regrets, AISTATS 2023). As Optuna's Terminator with EMMREvaluator(
// deterministic_objective, delta), and with MedianErrorEvaluator(warm_up_trials, n_initial_trials,
// threshold_ratio) or StaticErrorEvaluator(error).
class Emmr final : public Terminator {
 public:
  explicit Emmr(const EmmrSettings& settings) : settings_(settings) {}

  absl::Status Fits(const SearchSpace& space) const override { return CanBeModelled(space); }

  double Work(const TerminatorInput& input) const override {
    if (input.ended.size() < LeastTrials()) return 0;
    double work = samplers::gp::WorkOfRegretBound(input.ended.size(), input.space);
    if (!settings_.error) {
      for (std::size_t n = 2; n <= settings_.initial_trials; ++n) {
        work += samplers::gp::WorkOfRegretBound(n, input.space);
      }
    }
    return 2 * work;
  }

  TerminatorVerdict Judge(const TerminatorInput& input) const override {
    const std::vector<const Observation*> complete = CompleteTrials(input);
    if (complete.size() < LeastTrials()) return {};
    const std::optional<double> bound = Bound(input, complete, input.seed);
    if (!bound) return {};
    const double error = settings_.error ? *settings_.error : Threshold(input, complete);
    if (!(*bound < error) || input.stop.stop_requested()) return {};
    return {true, absl::StrFormat(
                      "after %d complete trials the newest, %d, can have changed the expected "
                      "minimum regret by %.3g standard deviations at the most, less than %s",
                      complete.size(), complete.back()->trial_number, *bound, Told(error))};
  }

 private:
  std::size_t LeastTrials() const {
    return settings_.error ? settings_.min_trials
                           : std::max(settings_.min_trials,
                                      settings_.warm_up_trials + settings_.initial_trials);
  }

  std::optional<double> Bound(const TerminatorInput& input,
                              std::span<const Observation* const> trials,
                              std::uint64_t seed) const {
    return samplers::gp::RegretChangeBound(input.space, input.direction, trials, settings_.model,
                                           seed, input.stop);
  }

  // That part of the median of the first bounds. Of one trial there is none, and anything may have
  // changed; where that is the median (of trials of another space), no bound is below. Of the same
  // study always the same.
  double Threshold(const TerminatorInput& input,
                   std::span<const Observation* const> complete) const {
    const auto first = complete.subspan(settings_.warm_up_trials, settings_.initial_trials);
    std::vector<double> bounds;
    for (std::size_t n = 1; n <= first.size() && !input.stop.stop_requested(); ++n) {
      bounds.push_back(Bound(input, first.first(n), MixSeed(kSeedOfThreshold, n))
                           .value_or(std::numeric_limits<double>::infinity()));
    }
    if (bounds.size() < first.size()) return 0;
    std::ranges::sort(bounds);
    const double median = bounds[bounds.size() / 2];
    return std::isfinite(median) ? settings_.ratio * median : 0;
  }

  std::string Told(double error) const {
    if (settings_.error) return absl::StrFormat("the error of %.3g", error);
    return absl::StrFormat("%.3g, which is %g of the median at the %d trials after the first %d",
                           error, settings_.ratio, settings_.initial_trials,
                           settings_.warm_up_trials);
  }

  const EmmrSettings settings_;
};

}  // namespace

PluginRow<Terminator> EmmrRow() {
  return {{.name = "emmr",
           .summary = "ends a study whose newest trial changes little of what may be gained",
           .options =
               std::vector<PluginOption>{
                   {.name = "delta",
                    .default_value = 0.1,
                    .most = 1,
                    .open = true,
                    .meaning = "the chance that the bounds of the model do not hold"},
                   {.name = "deterministic_objective",
                    .meaning = "the same parameters give the same value, without noise",
                    .flag = true},
                   {.name = "error",
                    .open = true,
                    .meaning = "in standard deviations of the values; else the threshold",
                    .optional = true},
                   {.name = "initial_trials",
                    .default_value = 20,
                    .least = 3,
                    .most = 100,
                    .whole = true,
                    .meaning = "of the threshold: trials whose bounds it is a part of"},
                   MinTrialsOption(2),
                   {.name = "threshold_ratio",
                    .default_value = 0.01,
                    .open = true,
                    .meaning = "of the threshold: the part of the median of those bounds"},
                   {.name = "warm_up_trials",
                    .default_value = 10,
                    .most = 10000,
                    .whole = true,
                    .meaning = "of the threshold: trials that come before those"}}},
          [](const OptionValues& options) {
            const auto count = [&options](std::string_view name) {
              return static_cast<std::size_t>(options.Whole(name));
            };
            return std::make_unique<Emmr>(
                EmmrSettings{.error = options.Given("error"),
                             .min_trials = count("min_trials"),
                             .model = {.delta = options["delta"],
                                       .deterministic = options.Flag("deterministic_objective")},
                             .warm_up_trials = count("warm_up_trials"),
                             .initial_trials = count("initial_trials"),
                             .ratio = options["threshold_ratio"]});
          }};
}

}  // namespace espalier::terminators
