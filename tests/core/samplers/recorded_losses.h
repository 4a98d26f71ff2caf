#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "tests/core/samplers/optuna/recorded.h"
#include "tuner/core/fronts/fronts.h"

namespace espalier::testing {

// What optuna/record_nsga.py has recorded.
inline const Recorded& RecordedNsga() {
  static const Recorded recorded(ESPALIER_RECORDED_NSGA);
  return recorded;
}

// Numbers row by row.
inline Losses LossesIn(const std::vector<double>& numbers, std::size_t objectives) {
  Losses losses(objectives);
  for (std::size_t i = 0; i < numbers.size(); i += objectives) {
    losses.Add(std::span(numbers).subspan(i, objectives));
  }
  return losses;
}

}  // namespace espalier::testing
