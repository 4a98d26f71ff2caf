#pragma once

#include <string>

#include "search_spaces/parameter.h"

namespace espalier {

inline constexpr double kLeastConfidence = 0.01;
inline constexpr double kMostConfidence = 0.99;

// Where a person expects the best value of a parameter.
struct Belief {
  std::string name;  // of the parameter
  ParameterValue value;
  double confidence = 0.5;  // how closely, and for how many trials, draws keep to it

  friend bool operator==(const Belief&, const Belief&) = default;
};

}  // namespace espalier
