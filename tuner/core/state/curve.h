#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/clock.h"

namespace espalier {

enum class Direction { kMinimize, kMaximize };

// Whether a metric's value says how good a trial is. NaN does not, nor does an infinity that would
// be better than every number: it comes of an overflow or the logarithm of 0.
constexpr bool Counts(Direction direction, double value) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return value == value && value != (direction == Direction::kMinimize ? -kInfinity : kInfinity);
}

// True if a is a strictly better metric value than b. What does not count is worse than all that
// does.
constexpr bool Better(Direction direction, double a, double b) {
  if (!Counts(direction, a)) return false;
  if (!Counts(direction, b)) return true;
  return direction == Direction::kMinimize ? a < b : a > b;
}

// One reported value of a study's metric.
struct IntermediateValue {
  std::int64_t step = 0;  // the program's own count (usually epochs), from 1
  double value = 0;       // may be NaN or infinite
  double progress = 0;    // scale-invariant iterations, 0: unknown
  Time at;
  std::int64_t batch_size = 0;  // global batch size then in use, 0: unknown
  // Of the trial when it was reported; finite, and small, for there may be a million of them.
  float promise = 0;  // that it ends among the best, 0: unknown
  float goodput = 0;  // samples a second that count, 0: unknown

  friend bool operator==(const IntermediateValue&, const IntermediateValue&) = default;
};

// The newest of the points, which ascend by step, at `step` or before; null: there is none.
inline const IntermediateValue* NewestUntil(std::span<const IntermediateValue> points,
                                            std::int64_t step) {
  const auto after = std::ranges::upper_bound(points, step, {}, &IntermediateValue::step);
  return after == points.begin() ? nullptr : &*(after - 1);
}

// A trial's curve as pruners and the promise model see it. Points ascend by step.
struct Curve {
  std::int64_t trial_number = 0;
  std::span<const IntermediateValue> points;  // of the first objective
  bool ended = false;                         // COMPLETE, PRUNED or FAIL: nothing will be added
  bool complete = false;  // COMPLETE, with values that count: ran its whole length
  bool pruned = false;    // PRUNED: ended for what it had told
  double value = std::numeric_limits<double>::quiet_NaN();  // final; NaN: none
  Time ended_at{};                                          // zero: it has not, or it is not known
  // Of further objectives, one after the other; they may lack some of the steps of the first.
  std::span<const std::vector<IntermediateValue>> others{};
  bool breaks = false;  // a constraint, by its newest figures: it is no rival of others
};

}  // namespace espalier
