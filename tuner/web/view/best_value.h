#pragma once

#include <optional>

#include "tuner/core/state/study.h"

namespace espalier::view {

// The value that a trial is ranked by (BestValue in tuner/core), and the step of its best value.
struct BestSoFar {
  std::optional<double> value;
  std::optional<double> step;
};
BestSoFar BestOf(const Trial& trial, Direction direction);

}  // namespace espalier::view
