#pragma once

#include <optional>
#include <vector>

#include "tuner/core/samplers/gp/trials.h"

namespace espalier::samplers::gp {

// Trials of another study (SamplerInput::before) as a model takes them.
struct BeforeTrials {
  Points points;
  Eigen::MatrixXd values;          // their scores, standardised; a column for each objective
  std::vector<Eigen::Index> axes;  // of which they tell, at least one
};

// nullopt: there are none, or they tell of none of the axes.
std::optional<BeforeTrials> BeforeTrialsOf(const SamplerInput& input, const GpSpace& space);

// Of the study's own trials, where none has a value: so many of those that failed.
Points FailedOf(const SamplerInput& input, const GpSpace& space);

}  // namespace espalier::samplers::gp
