#include "tuner/core/samplers/gp/fantasies.h"

#include <algorithm>
#include <utility>

#include "search_spaces/gaussian.h"
#include "tuner/core/samplers/low_discrepancy.h"

namespace espalier::samplers::gp {

Eigen::MatrixXd NormalDraws(Eigen::Index draws, Eigen::Index dimensions, std::uint64_t seed) {
  constexpr double kSmallest = 0x1.0p-40;
  Eigen::MatrixXd normals(draws, dimensions);
  for (Eigen::Index i = 0; i < draws; ++i) {
    for (Eigen::Index d = 0; d < dimensions; ++d) {
      const double u = ScrambledSobolCoordinate(static_cast<std::uint64_t>(i),
                                                static_cast<std::size_t>(d), seed);
      normals(i, d) = NormalQuantile(std::clamp(u, kSmallest, 1 - kSmallest));
    }
  }
  return normals;
}

WithFantasies Fantasise(const GaussianProcess& model, const Points& running,
                        const Eigen::MatrixXd& normals) {
  Eigen::MatrixXd factor = FactorOf(model.JointCovariance(running), kStabilizingVariance);
  Eigen::MatrixXd values = factor.triangularView<Eigen::Lower>() * normals.transpose();
  values.colwise() += model.At(running).mean.row(0).transpose();
  GaussianProcess given = model.Given(running, values, kStabilizingVariance);
  return {std::move(given), std::move(values)};
}

}  // namespace espalier::samplers::gp
