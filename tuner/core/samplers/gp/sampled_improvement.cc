#include "tuner/core/samplers/gp/sampled_improvement.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "tuner/core/samplers/gp/fantasies.h"

namespace espalier::samplers::gp {
namespace {

constexpr double kLeastImprovement = 1e-12;

double Softly(double value, double threshold) { return (value - threshold) / kFeasibilityWidth; }

}  // namespace

double LogImprovement(double value, double best) {
  if (!std::isfinite(best)) return 0;
  return std::log(std::max(value - best, kLeastImprovement));
}

double LogSoftlyAbove(double value, double threshold) {
  const double x = Softly(value, threshold);
  return x > 0 ? -std::log1p(std::exp(-x)) : x - std::log1p(std::exp(x));
}

double LogSumExp(const Eigen::VectorXd& logs) {
  const double most = logs.maxCoeff();
  if (!std::isfinite(most)) return most;
  return most + std::log((logs.array() - most).exp().sum());
}

SampledImprovement::SampledImprovement(double best, std::vector<double> thresholds,
                                       std::vector<OfDraws> draws)
    : best_(best), thresholds_(std::move(thresholds)), draws_(std::move(draws)) {
  const Eigen::MatrixXd& objective = draws_.front().running;
  running_ = Eigen::VectorXd::Constant(objective.cols(), -std::numeric_limits<double>::infinity());
  for (Eigen::Index s = 0; s < objective.cols(); ++s) {
    for (Eigen::Index r = 0; r < objective.rows(); ++r) {
      double worth = LogImprovement(objective(r, s), best_);
      for (std::size_t c = 0; c < thresholds_.size(); ++c) {
        worth += LogSoftlyAbove(draws_[c + 1].running(r, s), thresholds_[c]);
      }
      running_[s] = std::max(running_[s], worth);
    }
  }
}

double SampledImprovement::Of(const std::vector<Posterior>& posteriors, Eigen::Index j,
                              std::vector<Slopes>* slopes) const {
  const Eigen::Index count = running_.size();
  std::vector<Eigen::VectorXd> values;
  std::vector<double> deviations;
  for (std::size_t m = 0; m < posteriors.size(); ++m) {
    deviations.push_back(std::sqrt(posteriors[m].variance[j] + kStabilizingVariance));
    values.emplace_back(posteriors[m].mean.col(j) + deviations[m] * draws_[m].normals);
  }
  Eigen::VectorXd own(count);
  for (Eigen::Index s = 0; s < count; ++s) {
    own[s] = LogImprovement(values[0][s], best_);
    for (std::size_t c = 0; c < thresholds_.size(); ++c) {
      own[s] += LogSoftlyAbove(values[c + 1][s], thresholds_[c]);
    }
  }
  const double sum = LogSumExp(own.cwiseMax(running_));
  if (slopes != nullptr) {
    for (std::size_t m = 0; m < posteriors.size(); ++m) {
      Eigen::VectorXd by_mean = Eigen::VectorXd::Zero(count);
      for (Eigen::Index s = 0; s < count; ++s) {
        if (own[s] <= running_[s]) continue;
        const double weight = std::exp(own[s] - sum);
        if (m > 0) {
          const double x = Softly(values[m][s], thresholds_[m - 1]);
          by_mean[s] = weight / (kFeasibilityWidth * (1 + std::exp(x)));
        } else if (std::isfinite(best_) && values[0][s] - best_ > kLeastImprovement) {
          by_mean[s] = weight / (values[0][s] - best_);
        }
      }
      (*slopes)[m].by_variance = by_mean.dot(draws_[m].normals) / (2 * deviations[m]);
      (*slopes)[m].by_mean = std::move(by_mean);
    }
  }
  return sum - std::log(static_cast<double>(count));
}

}  // namespace espalier::samplers::gp
