#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/plugin.h"
#include "tuner/core/state/curve.h"

namespace espalier {

// The share of the pool that is assumed for a trial with slots outside the pool.
inline constexpr double kUsualPoolShare = 0.125;

// The facts on which a verdict rests. `others` are all other trials of the study, ended ones
// included, in any order.
struct PrunerInput {
  Direction direction = Direction::kMinimize;
  const Curve& trial;
  std::span<const Curve> others;
  std::int64_t max_step = 0;  // where a trial's curve ends, 0: unknown
  int best_k = 1;             // how many best trials the study is after
  // The least share of the pool's slots that the trial holds: what keeping it costs the others.
  double pool_share = kUsualPoolShare;
  // Of further objectives, which curves have as `others`.
  std::span<const Direction> other_directions{};
};

enum class PruneAction {
  kKeep,
  kPause,  // the trial gives its slots back, and goes on if MayGoOn says so
  kPrune,  // the trial ends
};
struct PruneVerdict {
  PruneAction action = PruneAction::kKeep;
  std::string reason{};  // with figures; empty while the trial is kept
};

// Says whether a trial should end now, each time it has reported a new value. Pure and without
// state: the same input gives the same verdict, and the order of `others` does not matter. A trial
// without points is never pruned. Const calls may run on any thread.
class Pruner {
 public:
  virtual ~Pruner() = default;
  virtual PruneVerdict Judge(const PrunerInput& input) const = 0;

  // Whether it can judge trials of several objectives.
  virtual bool takes_objectives() const { return false; }

  // Whether a later step says more of a trial. False: steps are names, of the instances on which a
  // trial is tried, and come in any order.
  virtual bool steps_ascend() const { return true; }

  // Whether the pruner ever pauses a trial. MayGoOn is called only if so.
  virtual bool pauses() const { return false; }
  // The paused trials of a study (indices into all its curves) that may run again, in the same
  // order. A trial that was paused for another reason than a verdict may.
  virtual std::vector<std::size_t> MayGoOn(Direction /*direction*/,
                                           std::span<const Curve> /*curves*/,
                                           std::span<const std::size_t> paused) const {
    return {paused.begin(), paused.end()};
  }
};

// All pruners. Each row is the last function of its pruner's source file.
const PluginTable<Pruner>& Pruners();

// InvalidArgument: the pruner or an option is unknown, or a value is out of range; the error names
// it and what is known.
absl::StatusOr<std::unique_ptr<Pruner>> MakePruner(std::string_view name, const Options& options);

}  // namespace espalier
