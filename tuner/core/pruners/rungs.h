#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/plugin.h"
#include "tuner/core/pruners/pruner.h"
#include "tuner/core/state/curve.h"

namespace espalier {

// The rungs of successive halving: min_steps times the powers of eta, below max_steps where that is
// known. A trial that reports rarely stands on a rung with its first value at or after it.
struct Rungs {
  std::int64_t min_steps = 1;
  std::int64_t eta = 3;
  std::int64_t max_steps = 0;  // 0: unknown

  // The highest rung that the newest point is the first to reach.
  std::optional<std::int64_t> ReachedByNewest(const Curve& trial) const;
};

// Less is better; what does not count comes last.
double CostOf(Direction direction, double value);
// The costs at a rung of the curves that have reached it.
std::vector<double> CostsAt(std::int64_t rung, Direction direction, std::span<const Curve> curves);

// The reason to end a trial whose value at this rung does not count; empty: it does.
std::string NoValueAt(std::int64_t rung, const PrunerInput& input);

// Ends the trial unless it is among the best 1/eta (at least one, ties go on) of those that have
// reached the rung of its newest point, itself and `others`; while fewer than eta have, all go on.
PruneVerdict StopBelowTop(const Rungs& rungs, const PrunerInput& input,
                          std::span<const Curve> others);

// The options by which a pruner is given rungs, and how they are read: max_steps below the first
// rung is refused.
std::vector<PluginOption> RungOptions();
absl::StatusOr<Rungs> ReadRungs(const OptionValues& options);

}  // namespace espalier
