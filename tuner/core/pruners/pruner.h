#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/base/plugin.h"
#include "tuner/core/state/curve.h"

namespace espalier {

// What a verdict rests on. `others` are all other trials of the study, those that ended included,
// in any order.
struct PrunerInput {
  Direction direction = Direction::kMinimize;
  const Curve& trial;
  std::span<const Curve> others;
  std::int64_t max_step = 0;  // where a trial's curve ends, 0: unknown
  int best_k = 1;             // how many best trials the study is after
  // Of the pool's slots, the share that a trial holds at the least: what keeping it costs others.
  double pool_share = 0.125;
};

// Keep, pause or end: at most one of the two is set.
struct PruneVerdict {
  bool prune = false;
  std::string reason{};  // with figures; empty while the trial is kept
  bool pause = false;    // give its slots back, and go on if MayGoOn says so
};

// Says whether a trial should end now, each time it has reported a new value. Pure and without
// state: the same input gives the same verdict, and the order of `others` does not matter. A trial
// without points is never pruned. Const calls may run on any thread.
class Pruner {
 public:
  virtual ~Pruner() = default;
  virtual PruneVerdict Judge(const PrunerInput& input) const = 0;

  // Whether it ever pauses a trial. Only then is MayGoOn asked.
  virtual bool pauses() const { return false; }
  // Of the paused trials of a study (indices into all its curves), those that may run again, in the
  // same order. A trial that was paused for another reason than a verdict may.
  virtual std::vector<std::size_t> MayGoOn(Direction /*direction*/,
                                           std::span<const Curve> /*curves*/,
                                           std::span<const std::size_t> paused) const {
    return {paused.begin(), paused.end()};
  }
};

// All there are; a row of it is the last function of its source file.
const PluginTable<Pruner>& Pruners();

// InvalidArgument names an unknown pruner or option, or a value out of range, and what is known.
absl::StatusOr<std::unique_ptr<Pruner>> MakePruner(std::string_view name, const Options& options);

}  // namespace espalier
