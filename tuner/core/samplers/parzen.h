#pragma once

#include <vector>

#include "base/random.h"
#include "tuner/core/samplers/axis.h"

namespace espalier::samplers {

enum class Bandwidth {
  kShared,     // one an axis for all points, from their spread and number: for several axes
  kNeighbors,  // the distance to the farther neighbour, for each point: for one axis
};

// A density estimated from points: a mixture of one kernel a point, and one for the prior, which is
// uniform. Kernels are products over the axes of truncated Gaussians on [0, 1], their mass in a
// cell where the axis is discrete, and of smoothed indicators on unordered axes.
// After Bergstra et al. 2011 and, for several axes at once, Falkner et al. 2018.
class ParzenEstimator {
 public:
  // One weight a point; the prior weighs one. Axes and points must outlive the estimator.
  ParzenEstimator(std::vector<const Axis*> axes, std::vector<Point> points,
                  std::vector<double> weights, Bandwidth bandwidth);

  Point Sample(Random& random) const;
  double LogDensity(const Point& point) const;

 private:
  void SetSharedBandwidths();
  void SetNeighborBandwidths(std::size_t axis);
  void SetConstants();
  double& Sigma(std::size_t k, std::size_t axis) { return sigma_[k * axes_.size() + axis]; }
  double Sigma(std::size_t k, std::size_t axis) const { return sigma_[k * axes_.size() + axis]; }
  double LogKernel(std::size_t k, const Point& point) const;
  double LogPrior(const Point& point) const;
  Coordinate SampleAxis(std::size_t k, std::size_t axis, Random& random) const;

  std::vector<const Axis*> axes_;
  std::vector<Point> points_;
  std::vector<double> weights_;    // of the points, then of the prior; they add up to one
  std::vector<double> sigma_;      // by point, then axis
  std::vector<double> constants_;  // by point: log of the factors that no argument changes
  double smoothing_;               // what an indicator gives each option beside the observed one
};

}  // namespace espalier::samplers
