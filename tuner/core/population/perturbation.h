#pragma once

#include "base/random.h"
#include "base/status.h"
#include "search_spaces/parameter.h"
#include "search_spaces/search_space.h"
#include "tuner/core/state/population_spec.h"

namespace espalier {

// Only parameters that every trial has, and that bring no others, can change while a trial trains.
// InvalidArgument: one is not of the space, depends on a choice or is a nested one; none is named;
// the probability or a factor is out of range. The error names it.
absl::Status CheckPerturbation(const PopulationSpec& population, const SearchSpace& space);

// How a member changes the parameters that it takes over: PBT's "explore" (Jaderberg et al. 2017,
// arXiv:1711.09846, section 3.1), as Ray Tune does it.
//
// `parameters` with new values of those that are explored. With the probability of a resample a
// value is drawn from the space. Else a number is multiplied by one of the factors, each as likely;
// what takes whole numbers has its fraction cut off, what has a grid is rounded to it, and bounds
// are kept, which Ray does not. A choice goes to one of its two neighbours in the order of its
// options, and stays at an end; one that the space does not contain is drawn anew.
// Requires OK of CheckPerturbation, and parameters with all that is explored.
Parameters Perturb(const PopulationSpec& population, const SearchSpace& space,
                   Parameters parameters, Random& random);

}  // namespace espalier
