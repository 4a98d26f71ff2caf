#pragma once

#include <Eigen/Core>
#include <cstddef>
#include <vector>

#include "base/random.h"
#include "tuner/core/samplers/cma_es.h"

namespace espalier::samplers {

// A dimension of few values, at 0, 1/(count-1), ..., 1.
struct SteppedDimension {
  std::size_t dimension;
  double count;  // at least 2

  double IndexAt(double place) const;  // of the nearest value; a tie goes to the lower one
  double Limit(double index) const;    // between a value and the next one
};

// CMA-ES with margin: Hamano, Saito, Nomura and Shirakawa 2022, "CMA-ES with Margin: Lower-bounding
// marginal probability for mixed-integer black-box optimization" (arXiv:2205.13482). Values of a
// stepped dimension beside the mean keep a probability of at least 1 / (dimensions * population),
// so that a small step size does not fix it. Coordinates are stretched by A, a diagonal, before
// they are rounded to a value.
class CmaMargin {
 public:
  CmaMargin(const CmaEs& cma, std::vector<SteppedDimension> stepped);

  const std::vector<SteppedDimension>& stepped() const { return stepped_; }
  double stretch(std::size_t s) const { return stretch_[s]; }  // of A

  // The number of the value of the s-th stepped dimension that a draw's coordinate is rounded to.
  double IndexOf(const CmaEs& cma, std::size_t s, double coordinate) const;

  // A coordinate that is rounded to this value, drawn as the distribution has it: what was drawn
  // for a trial is not in its record. In tails, where doubles tell no probability, the nearest one.
  double CoordinateOf(const CmaEs& cma, std::size_t s, double index, Random& random) const;

  // Corrects mean and A, with sigma and C as they are. After each generation.
  void Correct(CmaEs& cma);

 private:
  std::vector<SteppedDimension> stepped_;
  double margin_;
  std::vector<double> stretch_;  // by stepped dimension
};

}  // namespace espalier::samplers
