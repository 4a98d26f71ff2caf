#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/plugin.h"
#include "tuner/core/pruners/pruner.h"

namespace espalier {

// The value below which `percent` of the values lie, between two of them in proportion: Hyndman and
// Fan, The American Statistician 50 (1996), definition 7. Requires at least one value, no NaN.
double Percentile(std::vector<double> values, double percent);

// When a trial is judged by what complete trials had at the same step, and which part of them it
// must belong to. Values that are not numbers are passed over.
struct PercentileRule {
  double best_percent = 50;
  std::int64_t startup_trials = 5;
  std::int64_t warmup_steps = 0;
  std::int64_t interval = 1;
  std::int64_t min_trials = 1;  // with a value at the step, whatever it is

  // A bar that the trial's best value so far has missed, with what it was made of.
  struct Missed {
    double best = 0;
    double bar = 0;
    std::int64_t step = 0;
    std::size_t trials = 0;  // those with a number at the step
  };
  // None: the trial is kept. Requires a value that counts.
  std::optional<Missed> Check(const PrunerInput& input) const;
};

// At which steps a trial is judged: warmup_steps and interval.
std::vector<PluginOption> CheckedStepsOptions();

// The options by which a rule is given, but for the percentage, and how they are read.
std::vector<PluginOption> PercentileRuleOptions();
PercentileRule ReadPercentileRule(const OptionValues& options, double best_percent);

// A pruner that ends a trial once it has missed the bar, with what `text` says of that; and one
// that has had no number yet at once.
using TextOfMissed = std::string (*)(const PercentileRule&, const PercentileRule::Missed&);
std::unique_ptr<Pruner> MakePercentilePruner(const PercentileRule& rule, TextOfMissed text);

}  // namespace espalier
