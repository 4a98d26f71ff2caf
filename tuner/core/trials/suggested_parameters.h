#pragma once

#include <map>
#include <vector>

#include "search_spaces/formats/optuna/distribution.h"
#include "tuner/core/state/study.h"

namespace espalier {

// The parameters of an ask-and-tell study's trials as its search space knows them. Keeps what it
// has read: the distributions, and the parameters of trials that have ended.
class SuggestedParameters {
 public:
  // Good until the next Of of the same trial.
  const Parameters* Of(const Trial& trial, const Study& study);

 private:
  struct Known {
    Parameters parameters;
    bool ended = false;  // so that they stay
  };
  Parameters Read(const Trial& trial, const Study& study);

  std::vector<OptunaDistribution> distributions_;  // of Study::suggestions, by index
  std::map<TrialId, Known> of_trials_;
};

}  // namespace espalier
