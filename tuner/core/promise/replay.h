#pragma once

#include <span>
#include <vector>

#include "tuner/core/promise/promise.h"
#include "tuner/core/promise/reliability.h"
#include "tuner/core/state/curve.h"

namespace espalier {

// A trial of a study that is over, with the time of each of its points.
struct PastTrial {
  std::span<const IntermediateValue> points;  // ascending by step and time
  Time created;
  Time ended;             // zero: has not
  bool complete = false;  // ran its whole length
};

inline constexpr int kReplayMoments = 100;

// What the promise model would have said of a recorded study, and what became of it. At moments
// spread evenly over the study's reports: the promise of each trial that was alive and had
// reported, from nothing but what was known by then, and whether the trial is among the best k that
// ran to their end. A trial that was ended early counts as one that is not, although that is
// unknown: the more trials a pruner ends, the more its own verdicts are confirmed here. Without
// options.max_step, the last step of complete trials is taken for known. Empty where no trial is
// complete. Pure, deterministic; a promise computation a moment.
std::vector<Prediction> ReplayPromise(Direction direction, std::span<const PastTrial> trials,
                                      const PromiseOptions& options, int moments = kReplayMoments);

}  // namespace espalier
