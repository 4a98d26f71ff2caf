#pragma once

#include <Eigen/Core>
#include <cstdint>

#include "tuner/core/samplers/gp/gaussian_process.h"

namespace espalier::samplers::gp {

// What is added to variances, so that a point that is known has a logarithm.
inline constexpr double kStabilizingVariance = 1e-12;

// Draws of `dimensions` independent standard normal numbers, one a row, from a scrambled sequence
// of Sobol's: the same draws for every candidate, so that what is worked out from them is smooth.
Eigen::MatrixXd NormalDraws(Eigen::Index draws, Eigen::Index dimensions, std::uint64_t seed);

// The model, with a sample of what running trials may come to for each draw (Snoek et al. 2012).
struct WithFantasies {
  GaussianProcess model;
  Eigen::MatrixXd values;  // of the running trials: a row for each, a column for each draw
};
// `normals`: a row for each draw, a column for each running trial.
WithFantasies Fantasise(const GaussianProcess& model, const Points& running,
                        const Eigen::MatrixXd& normals);

}  // namespace espalier::samplers::gp
