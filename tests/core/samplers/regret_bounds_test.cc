// With the same kernels, what a Gaussian process says of what may still be gained is what Optuna's
// says: see optuna/record_regret.py.

#include "tuner/core/samplers/gp/regret_bounds.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tests/core/samplers/optuna/recorded.h"

namespace espalier::samplers::gp {
namespace {

const espalier::testing::Recorded& OptunaBounds() {
  static const espalier::testing::Recorded recorded(ESPALIER_RECORDED_REGRET);
  return recorded;
}

constexpr Eigen::Index kBoundAxes = 3;

Eigen::MatrixXd BoundTable(const std::string& name, Eigen::Index columns) {
  const std::vector<double>& numbers = OptunaBounds()[name];
  using ByRow = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  return Eigen::Map<const ByRow>(numbers.data(),
                                 static_cast<Eigen::Index>(numbers.size()) / columns, columns);
}

GaussianProcess BoundProcess(const std::string& kernel, const Points& points,
                             const Eigen::VectorXd& values) {
  const Eigen::VectorXd numbers = BoundTable(kernel, 1);
  return {Kernel({false, false, true},
                 {numbers.head(kBoundAxes), numbers[kBoundAxes], numbers[kBoundAxes + 1]}),
          points, values, points.rows()};
}

class BoundsAsOptunas : public ::testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Histories, BoundsAsOptunas, ::testing::Values("bounds20", "bounds41"));

TEST_P(BoundsAsOptunas, WithTheSameKernels) {
  const std::string name = GetParam();
  const Points points = BoundTable(name + ".points", kBoundAxes);
  const Eigen::VectorXd values = BoundTable(name + ".values", 1);
  const Points drawn = BoundTable(name + ".drawn", kBoundAxes);
  const Eigen::Index last = points.rows() - 1;
  const GaussianProcess before =
      BoundProcess(name + ".before", points.topRows(last), values.head(last));
  const GaussianProcess after = BoundProcess(name + ".after", points, values);
  for (const auto& [delta, word] : {std::pair(0.1, ".0.1"), std::pair(0.01, ".0.01")}) {
    const double regret = OptunaBounds()[name + ".regret" + word].front();
    EXPECT_NEAR(RegretBoundOf(after, points, drawn, delta), regret, 1e-6);
    const double change = OptunaBounds()[name + ".change" + word].front();
    EXPECT_NEAR(RegretChangeBoundOf({before, after, points, values}, drawn, delta), change,
                1e-6 * change);
  }
}

}  // namespace
}  // namespace espalier::samplers::gp
