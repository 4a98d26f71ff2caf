#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "base/ids.h"

namespace espalier {

// As a figure that is kept; 0 for what is no number or too large for one.
inline float KeptFigure(double value) {
  return std::abs(value) <= std::numeric_limits<float>::max() ? static_cast<float>(value) : 0;
}

// Slots that a job gets from another.
struct SlotsTaken {
  TrialId trial;
  int slots = 0;
  float promise = 0;  // of that trial

  friend bool operator==(const SlotsTaken&, const SlotsTaken&) = default;
};

// What a policy with a model knew of a job when it decided about it: the figures of the reason's
// text, and those it left out. All are finite. They are kept with every decision, so they are
// small.
struct AllocationFigures {
  float promise = 0;         // 0 to 1
  float speedup_before = 0;  // over one slot; 0: it held none
  float speedup_after = 0;
  float gain = 0;           // of speedup, times what the policy takes one to be worth to this job
  float resize_cost_s = 0;  // training time that the change was taken to cost; 0: it held no slots
  std::vector<SlotsTaken> from{};  // in order of submission; empty: its new slots were free

  friend bool operator==(const AllocationFigures&, const AllocationFigures&) = default;
};

}  // namespace espalier
