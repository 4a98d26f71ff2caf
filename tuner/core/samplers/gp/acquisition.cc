#include "tuner/core/samplers/gp/acquisition.h"

#include <utility>

namespace espalier::samplers::gp {

Acquisition::Acquisition(std::vector<GaussianProcess> models, std::size_t objectives,
                         std::unique_ptr<const Utility> utility)
    : models_(std::move(models)), objectives_(objectives), utility_(std::move(utility)) {}

Eigen::VectorXd Acquisition::ValuesOf(const std::vector<Posterior>& posteriors,
                                      Eigen::Index points) const {
  Eigen::VectorXd values(points);
  for (Eigen::Index j = 0; j < points; ++j) values[j] = utility_->Of(posteriors, j, nullptr);
  return values;
}

Eigen::VectorXd Acquisition::Values(const Points& at) const {
  std::vector<Posterior> posteriors;
  for (const GaussianProcess& model : models_) posteriors.push_back(model.At(at));
  return ValuesOf(posteriors, at.rows());
}

Eigen::VectorXd Acquisition::CoarseValues(const Points& at) const {
  std::vector<Posterior> posteriors;
  for (const GaussianProcess& model : models_) posteriors.push_back(model.CoarseAt(at));
  return ValuesOf(posteriors, at.rows());
}

Acquisition::WithGradients Acquisition::ValuesWithGradients(const Points& at) const {
  std::vector<GaussianProcess::Differentiable> made;
  std::vector<Posterior> posteriors;
  for (const GaussianProcess& model : models_) {
    made.push_back(model.DifferentiableAt(at));
    posteriors.push_back(std::move(made.back().posterior));
  }
  WithGradients all{Eigen::VectorXd(at.rows()), Points::Zero(at.rows(), at.cols())};
  std::vector<Utility::Slopes> slopes(models_.size());
  for (Eigen::Index j = 0; j < at.rows(); ++j) {
    all.values[j] = utility_->Of(posteriors, j, &slopes);
    for (std::size_t m = 0; m < models_.size(); ++m) {
      const Utility::Slopes& of_model = slopes[m];
      all.gradients.row(j) +=
          models_[m].Gradient(at, made[m], j, of_model.by_mean, of_model.by_variance);
    }
  }
  return all;
}

Point Acquisition::Lengths() const {
  Point lengths = Point::Zero(models_.front().kernel().axes());
  for (std::size_t m = 0; m < objectives_; ++m) {
    const auto& parameters = models_[m].kernel().parameters();
    lengths += parameters.inverse_squared_lengths.array().rsqrt().matrix().transpose();
  }
  return lengths / static_cast<double>(objectives_);
}

}  // namespace espalier::samplers::gp
