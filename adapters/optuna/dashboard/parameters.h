#pragma once

#include <string>

#include "tuner/analysis/drawn_parameters.h"

namespace espalier::optuna_dashboard {

// Python's class and text of the parameter's value.
struct ShownValue {
  std::string type;  // "<class 'float'>"
  std::string text;
};
ShownValue ValueShown(const OptunaDistribution& distribution, double stored);

}  // namespace espalier::optuna_dashboard
