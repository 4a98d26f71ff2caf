#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tuner/analysis/drawn_parameters.h"

namespace espalier {

struct Importance {
  std::string name;
  double importance = 0;     // of all parameters together: 1
  std::string distribution;  // Optuna's class, of the first trial that has the parameter
};

// How much each parameter decided whether a trial came among the best tenth of an objective:
// PED-ANOVA (Watanabe, Bansal, Hutter, IJCAI 2023) with conditional parameters by regimes, as
// Optuna 5.0 computes it. Greatest first. Empty where fewer than two trials are complete.
std::vector<Importance> Importances(const StudyCopy& study, DrawnParameters& parameters,
                                    std::size_t objective);

}  // namespace espalier
