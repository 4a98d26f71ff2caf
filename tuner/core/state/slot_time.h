#pragma once

#include <algorithm>

#include "tuner/core/state/study.h"

namespace espalier {

// How long a trial held the slots of one span so far.
inline double HeldSeconds(const SlotSpan& span, Time now) {
  return SecondsBetween(span.from, span.to == Time{} ? now : span.to);
}

// Slots that the trial has held, times how long.
inline double SlotSeconds(const Trial& trial, Time now) {
  double sum_s = 0;
  for (const SlotSpan& span : trial.spans) {
    sum_s += std::max(0.0, HeldSeconds(span, now)) * static_cast<double>(span.slots.size());
  }
  return sum_s;
}

}  // namespace espalier
