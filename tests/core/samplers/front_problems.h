#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/options.h"
#include "search_spaces/search_space.h"
#include "tuner/core/fronts/fronts.h"

namespace espalier::testing {

// A problem of several objectives, all to be minimised, with a front that is known: ZDT1 to 4 and 6
// (Zitzler, Deb & Thiele 2000), DTLZ1 to 4 and 7 with three objectives (Deb et al. 2005).
struct FrontProblem {
  std::string name;
  std::vector<double> low, high;  // of each number
  std::vector<double> (*values)(const std::vector<double>& x);
  // Hypervolumes are taken up to this; what is beyond counts for nothing.
  std::vector<double> reference;
  // On the front the first numbers are free, one fewer than objectives, and the others this. Of
  // ZDT3, ZDT6 and DTLZ7 such points may dominate one another.
  double rest_on_front;

  SearchSpace Space() const;  // of floats x0, x1, ...
  // Of the losses that are within the reference point.
  double VolumeOf(const Losses& losses) const;
};

const std::vector<FrontProblem>& FrontProblems();
const FrontProblem& FrontProblemNamed(const std::string& name);

// The hypervolume that a sampler reaches in `trials` trials, one after the other.
double VolumeReached(const std::string& sampler, const Options& options,
                     const FrontProblem& problem, int trials, std::uint64_t seed);

}  // namespace espalier::testing
