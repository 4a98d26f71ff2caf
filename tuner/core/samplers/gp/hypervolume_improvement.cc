#include "tuner/core/samplers/gp/hypervolume_improvement.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tuner/core/samplers/gp/expected_improvement.h"
#include "tuner/core/samplers/gp/fantasies.h"

namespace espalier::samplers::gp {
namespace {

constexpr double kLeastSide = 1e-12;

}  // namespace

HypervolumeImprovement::HypervolumeImprovement(std::size_t objectives, Draws draws,
                                               std::vector<double> thresholds)
    : objectives_(static_cast<Eigen::Index>(objectives)),
      draws_(std::move(draws)),
      thresholds_(std::move(thresholds)) {}

HypervolumeImprovement::Volume HypervolumeImprovement::VolumeAt(const Eigen::RowVectorXd& values,
                                                                const Boxes& boxes,
                                                                bool with_slope) const {
  const Eigen::Index count = boxes.low.rows();
  Eigen::ArrayXXd sides(count, objectives_);
  Eigen::ArrayXd volumes = Eigen::ArrayXd::Ones(count);
  for (Eigen::Index k = 0; k < objectives_; ++k) {
    sides.col(k) =
        (values[k] - boxes.low.col(k).array()).max(kLeastSide).min(boxes.width.col(k).array());
    volumes *= sides.col(k);
  }
  Volume volume{volumes.sum(), {}};
  if (!with_slope) return volume;
  volume.by_value.resize(objectives_);
  for (Eigen::Index k = 0; k < objectives_; ++k) {
    const auto inside = sides.col(k) > kLeastSide && sides.col(k) < boxes.width.col(k).array();
    volume.by_value[k] = inside.select(volumes / sides.col(k), 0.0).sum();
  }
  return volume;
}

double HypervolumeImprovement::Of(const std::vector<Posterior>& posteriors, Eigen::Index j,
                                  std::vector<Slopes>* slopes) const {
  const Eigen::Index count = draws_.normals.rows();
  const Eigen::Index drawn = draws_.normals.cols();
  Eigen::MatrixXd values(count, drawn);
  Eigen::RowVectorXd deviations(drawn);
  for (Eigen::Index m = 0; m < drawn; ++m) {
    const Posterior& of_model = posteriors[static_cast<std::size_t>(m)];
    deviations[m] = std::sqrt(of_model.variance[j] + kStabilizingVariance);
    values.col(m) = deviations[m] * draws_.normals.col(m);
    if (of_model.mean.rows() == 1) {
      values.col(m).array() += of_model.mean(0, j);
    } else {
      values.col(m) += of_model.mean.col(j);
    }
  }
  Eigen::VectorXd logs(count);
  Eigen::MatrixXd by_value(count, drawn);  // the derivatives of the logarithms
  for (Eigen::Index s = 0; s < count; ++s) {
    const Boxes& boxes = draws_.boxes[draws_.boxes.size() == 1 ? 0 : static_cast<std::size_t>(s)];
    const Volume volume = VolumeAt(values.row(s).head(objectives_), boxes, slopes != nullptr);
    logs[s] = std::log(volume.sum);
    if (slopes != nullptr) by_value.row(s).head(objectives_) = volume.by_value / volume.sum;
    for (Eigen::Index m = objectives_; m < drawn; ++m) {
      const double threshold = thresholds_[static_cast<std::size_t>(m - objectives_)];
      logs[s] += LogSoftlyAbove(values(s, m), threshold);
      const double x = (values(s, m) - threshold) / kFeasibilityWidth;
      by_value(s, m) = 1 / (kFeasibilityWidth * (1 + std::exp(x)));
    }
  }
  const double sum = LogSumExp(logs);
  double value = sum - std::log(static_cast<double>(count));
  if (slopes != nullptr) {
    const Eigen::VectorXd weights = (logs.array() - sum).exp().matrix();
    for (Eigen::Index m = 0; m < drawn; ++m) {
      const Eigen::VectorXd by_mean = by_value.col(m).cwiseProduct(weights);
      Slopes& of_model = (*slopes)[static_cast<std::size_t>(m)];
      of_model.by_variance = by_mean.dot(draws_.normals.col(m)) / (2 * deviations[m]);
      const bool one = posteriors[static_cast<std::size_t>(m)].mean.rows() == 1;
      of_model.by_mean = one ? Eigen::VectorXd::Constant(1, by_mean.sum()) : by_mean;
    }
  }
  if (!draws_.of_constraints) {
    value +=
        LogFeasibility(thresholds_, posteriors, static_cast<std::size_t>(objectives_), j, slopes);
  }
  return value;
}

Eigen::MatrixXd WithRunning(const Eigen::MatrixXd& values,
                            const std::vector<SampledImprovement::OfDraws>& draws,
                            const std::vector<double>& thresholds, Eigen::Index draw) {
  const auto objectives = static_cast<std::size_t>(values.cols());
  Eigen::MatrixXd all = values;
  for (Eigen::Index r = 0; r < draws.front().running.rows(); ++r) {
    bool keeps = true;
    for (std::size_t c = 0; c < thresholds.size(); ++c) {
      keeps = keeps && draws[objectives + c].running(r, draw) >= thresholds[c];
    }
    if (!keeps) continue;
    all.conservativeResize(all.rows() + 1, Eigen::NoChange);
    for (std::size_t k = 0; k < objectives; ++k) {
      all(all.rows() - 1, static_cast<Eigen::Index>(k)) = draws[k].running(r, draw);
    }
  }
  return all;
}

double Feasibility::Of(const std::vector<Posterior>& posteriors, Eigen::Index j,
                       std::vector<Slopes>* slopes) const {
  if (slopes != nullptr) {
    for (std::size_t m = 0; m < first_; ++m) {
      (*slopes)[m] = {Eigen::VectorXd::Zero(posteriors[m].mean.rows()), 0};
    }
  }
  return LogFeasibility(thresholds_, posteriors, first_, j, slopes);
}

}  // namespace espalier::samplers::gp
