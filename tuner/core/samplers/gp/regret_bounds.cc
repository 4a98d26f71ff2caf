#include "tuner/core/samplers/gp/regret_bounds.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>

#include "search_spaces/gaussian.h"
#include "tuner/core/samplers/gp/fit.h"

namespace espalier::samplers::gp {

namespace {

constexpr double kLeastSquaredDistance = 1e-10;  // of two best points, in the model

// The best of the first `count`; of equal ones, the first.
Eigen::Index PlaceOfBest(const Eigen::VectorXd& values, Eigen::Index count) {
  return std::distance(values.data(), std::max_element(values.data(), values.data() + count));
}

// The Kullback-Leibler divergence of what the process says without the last trial from what it says
// with it, both with the kernel of the latter (Ishibashi et al., eq. 4). At the last point its mean
// is off by `off`.
double Divergence(double variance, double off) {
  const double total = variance + kLeastNoise;
  return 0.5 * std::log1p(variance / kLeastNoise) - 0.5 * variance / total +
         0.5 * variance * off * off / (total * total);
}

}  // namespace

double RegretBoundOf(const GaussianProcess& process, const Points& observed, const Points& drawn,
                     double delta) {
  constexpr double kPi = std::numbers::pi;
  const auto n = static_cast<double>(observed.rows());
  const auto axes = static_cast<double>(observed.cols());
  const double beta = 2 * std::log(axes * n * n * kPi * kPi / 6 / delta) / 5;
  const auto largest = [beta](const Posterior& at, double sign) {
    return (at.mean.row(0).array() + sign * (beta * at.variance.array()).sqrt()).maxCoeff();
  };
  const Posterior at_observed = process.At(observed);
  return std::max(largest(at_observed, 1), largest(process.At(drawn), 1)) -
         largest(at_observed, -1);
}

double RegretChangeBoundOf(const LastTrial& trial, const Points& drawn, double delta) {
  const Eigen::Index last = trial.values.size() - 1;
  const Eigen::Index best = PlaceOfBest(trial.values, last + 1);
  const Eigen::Index best_before = PlaceOfBest(trial.values, last);
  Points points(3, trial.points.cols());
  points << trial.points.row(best), trial.points.row(best_before), trial.points.row(last);
  const Posterior after = trial.after.At(points);
  const Eigen::MatrixXd joint = trial.after.JointCovariance(points.topRows(2));
  const double squared_distance =
      best == best_before ? 0 : joint(0, 0) - 2 * joint(0, 1) + joint(1, 1);
  const double v = std::sqrt(std::max(kLeastSquaredDistance, squared_distance));
  const double gain = after.mean(0, 0) - trial.before.At(points.row(1)).mean(0, 0);
  const double g = gain / v;
  const double density = std::exp(-0.5 * g * g) / std::sqrt(2 * std::numbers::pi);
  const double change = v * (density + g * NormalCdf(g)) - gain;
  const double divergence = Divergence(after.variance[2], trial.values[last] - after.mean(0, 2));
  return change + RegretBoundOf(trial.before, trial.points.topRows(last), drawn, delta) *
                      std::sqrt(0.5 * std::max(0.0, divergence));
}

}  // namespace espalier::samplers::gp
