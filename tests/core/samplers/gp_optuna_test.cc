// At equal history and with the same kernels, what the Gaussian process says is what Optuna's says:
// see optuna/record_gp.py.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <utility>

#include "tests/core/samplers/optuna/recorded.h"
#include "tuner/core/samplers/gp/acquisition.h"
#include "tuner/core/samplers/gp/boxes.h"
#include "tuner/core/samplers/gp/expected_improvement.h"
#include "tuner/core/samplers/gp/fantasies.h"
#include "tuner/core/samplers/gp/fit.h"
#include "tuner/core/samplers/gp/hypervolume_improvement.h"
#include "tuner/core/samplers/gp/sampled_improvement.h"

namespace espalier::samplers::gp {
namespace {

constexpr Eigen::Index kAxes = 5;
constexpr Eigen::Index kDraws = 16;
constexpr double kNear = 1e-6;
const std::vector<bool> kUnordered = {false, false, false, false, true};

const espalier::testing::Recorded& Optuna() {
  static const espalier::testing::Recorded recorded(ESPALIER_RECORDED_GP);
  return recorded;
}

Eigen::MatrixXd Table(const std::string& name, Eigen::Index columns) {
  const std::vector<double>& numbers = Optuna()[name];
  using ByRow = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  return Eigen::Map<const ByRow>(numbers.data(),
                                 static_cast<Eigen::Index>(numbers.size()) / columns, columns);
}

KernelParameters KernelOf(const std::string& name) {
  const Eigen::VectorXd numbers = Table(name, 1);
  return {numbers.head(kAxes), numbers[kAxes], numbers[kAxes + 1]};
}

// A recorded history, and the models of its three objectives.
struct History {
  explicit History(std::string its_name)
      : name(std::move(its_name)),
        points(Table(name + ".points", kAxes)),
        values(Table(name + ".values", 3)),
        at(Table(name + ".at", kAxes)),
        running(Table(name + ".running", kAxes)) {}

  GaussianProcess Model(Eigen::Index k) const {
    return {Kernel(kUnordered, KernelOf(name + ".parameters" + std::to_string(k))), points,
            values.col(k), points.rows()};
  }
  std::vector<GaussianProcess> Models(Eigen::Index count) const {
    std::vector<GaussianProcess> models;
    for (Eigen::Index k = 0; k < count; ++k) models.push_back(Model(k));
    return models;
  }
  double best() const { return values.col(0).maxCoeff(); }

  void Expect(const std::string& what, const Acquisition& acquisition) const {
    SCOPED_TRACE(name + "." + what);
    const Eigen::VectorXd expected = Table(name + "." + what + ".values", 1);
    const Points gradients = Table(name + "." + what + ".gradients", kAxes);
    const auto made = acquisition.ValuesWithGradients(at);
    const Eigen::VectorXd values_alone = acquisition.Values(at);
    for (Eigen::Index i = 0; i < at.rows(); ++i) {
      EXPECT_NEAR(made.values[i], expected[i], kNear * std::max(1.0, std::abs(expected[i])));
      EXPECT_NEAR(values_alone[i], expected[i], kNear * std::max(1.0, std::abs(expected[i])));
      for (Eigen::Index axis = 0; axis < kAxes - 1; ++axis) {
        EXPECT_NEAR(made.gradients(i, axis), gradients(i, axis),
                    1e-5 * std::max(1.0, std::abs(gradients(i, axis))))
            << i << ", " << axis;
      }
    }
  }

  std::string name;
  Points points;
  Eigen::MatrixXd values;
  Points at;
  Points running;
};

class GpAsOptunas : public ::testing::TestWithParam<const char*> {
 protected:
  const History history_{GetParam()};
  const std::vector<double> thresholds_ = {0.2, -0.3};
};

INSTANTIATE_TEST_SUITE_P(Histories, GpAsOptunas,
                         ::testing::Values("history15", "history50", "history200"));

TEST_P(GpAsOptunas, LikelihoodAndPrior) {
  for (Eigen::Index k = 0; k < 3; ++k) {
    const std::string which = std::to_string(k);
    const std::vector<double>& expected = Optuna()[history_.name + ".likelihood" + which];
    const Likelihood likelihood =
        LikelihoodOf({history_.points, history_.values.col(k), kUnordered},
                     KernelOf(history_.name + ".parameters" + which), false);
    EXPECT_NEAR(likelihood.log_likelihood, expected[0], kNear * std::abs(expected[0]));
    EXPECT_NEAR(likelihood.log_prior, expected[1], kNear);
  }
}

TEST_P(GpAsOptunas, Posterior) {
  for (Eigen::Index k = 0; k < 3; ++k) {
    const std::string which = std::to_string(k);
    const Posterior posterior = history_.Model(k).At(history_.at);
    const Eigen::VectorXd mean = Table(history_.name + ".mean" + which, 1);
    const Eigen::VectorXd variance = Table(history_.name + ".variance" + which, 1);
    for (Eigen::Index i = 0; i < mean.size(); ++i) {
      EXPECT_NEAR(posterior.mean(0, i), mean[i], kNear);
      EXPECT_NEAR(posterior.variance[i], variance[i], kNear);
    }
  }
}

TEST_P(GpAsOptunas, FitsParametersAtLeastAsWell) {
  for (const bool deterministic : {false, true}) {
    const Observed observed{history_.points, history_.values.col(0), kUnordered};
    const auto sum = [&](const KernelParameters& parameters) {
      const Likelihood likelihood = LikelihoodOf(observed, parameters, deterministic);
      return likelihood.log_likelihood + likelihood.log_prior;
    };
    const KernelParameters theirs =
        KernelOf(history_.name + ".fitted." + (deterministic ? "deterministic" : "noisy"));
    const KernelParameters ours = FitParameters(observed, DefaultParameters(kAxes, deterministic),
                                                deterministic, std::stop_token());
    EXPECT_GE(sum(ours), sum(theirs) - 1e-3) << deterministic;
  }
}

TEST_P(GpAsOptunas, ExpectedImprovementAndFeasibility) {
  history_.Expect("logei",
                  {history_.Models(1), 1,
                   std::make_unique<ExpectedImprovement>(history_.best(), std::vector<double>{})});
  history_.Expect("logcei", {history_.Models(3), 1,
                             std::make_unique<ExpectedImprovement>(history_.best(), thresholds_)});
  std::vector<GaussianProcess> constraint = {history_.Model(1)};
  history_.Expect("logpi", {std::move(constraint), 1,
                            std::make_unique<Feasibility>(0, std::vector<double>{0.2})});
}

// Models with the fantasies that Optuna's have, from its own draws.
struct BesideRunning {
  BesideRunning(const History& history, Eigen::Index count) : normals(kDraws, count) {
    for (Eigen::Index m = 0; m < count; ++m) {
      const Eigen::MatrixXd drawn = Table("normals4." + std::to_string(7 + m), 4);
      WithFantasies with = Fantasise(history.Model(m), history.running, drawn.leftCols(3));
      models.push_back(std::move(with.model));
      draws.push_back({std::move(with.values), drawn.col(3)});
      normals.col(m) = drawn.col(3);
    }
  }

  std::vector<GaussianProcess> models;
  std::vector<SampledImprovement::OfDraws> draws;
  Eigen::MatrixXd normals;
};

TEST_P(GpAsOptunas, ImprovementBesideRunningTrials) {
  BesideRunning one(history_, 1);
  history_.Expect("qlogei", {std::move(one.models), 1,
                             std::make_unique<SampledImprovement>(
                                 history_.best(), std::vector<double>{}, std::move(one.draws))});
  BesideRunning all(history_, 3);
  history_.Expect("qlogcei", {std::move(all.models), 1,
                              std::make_unique<SampledImprovement>(history_.best(), thresholds_,
                                                                   std::move(all.draws))});
}

std::unique_ptr<const Utility> VolumeOf(const Eigen::MatrixXd& values, Eigen::MatrixXd normals,
                                        std::vector<double> thresholds) {
  const auto objectives = static_cast<std::size_t>(values.cols());
  return std::make_unique<HypervolumeImprovement>(
      objectives,
      HypervolumeImprovement::Draws{{NonDominatedBoxes(values, ReferencePoint(values))},
                                    std::move(normals)},
      std::move(thresholds));
}

TEST_P(GpAsOptunas, HypervolumeImprovement) {
  for (const Eigen::Index objectives : {2, 3}) {
    const std::string count = std::to_string(objectives);
    history_.Expect("logehvi" + count,
                    {history_.Models(objectives), static_cast<std::size_t>(objectives),
                     VolumeOf(history_.values.leftCols(objectives),
                              Table("normals" + count + ".7", objectives), {})});
  }
  const Eigen::MatrixXd feasible = history_.values.topLeftCorner(history_.points.rows() / 2, 2);
  history_.Expect("logcehvi", {history_.Models(3), 2,
                               VolumeOf(feasible, Table("normals2.7", 2), {thresholds_[1]})});
}

// With the running trials' values in each draw above the front.
std::vector<Boxes> BoxesOf(const Eigen::MatrixXd& values, const BesideRunning& beside,
                           const std::vector<double>& thresholds) {
  std::vector<Boxes> boxes;
  for (Eigen::Index s = 0; s < kDraws; ++s) {
    boxes.push_back(NonDominatedBoxes(WithRunning(values, beside.draws, thresholds, s),
                                      ReferencePoint(values)));
  }
  return boxes;
}

TEST_P(GpAsOptunas, HypervolumeImprovementBesideRunningTrials) {
  for (const Eigen::Index objectives : {2, 3}) {
    BesideRunning beside(history_, objectives);
    HypervolumeImprovement::Draws draws{BoxesOf(history_.values.leftCols(objectives), beside, {}),
                                        beside.normals, true};
    history_.Expect(
        "qlogehvi" + std::to_string(objectives),
        {std::move(beside.models), static_cast<std::size_t>(objectives),
         std::make_unique<gp::HypervolumeImprovement>(static_cast<std::size_t>(objectives),
                                                      std::move(draws), std::vector<double>{})});
  }
  const std::vector<double> thresholds = {thresholds_[1]};
  BesideRunning beside(history_, 3);
  const Eigen::MatrixXd feasible = history_.values.topLeftCorner(history_.points.rows() / 2, 2);
  HypervolumeImprovement::Draws draws{BoxesOf(feasible, beside, thresholds), beside.normals, true};
  history_.Expect("qlogcehvi",
                  {std::move(beside.models), 2,
                   std::make_unique<gp::HypervolumeImprovement>(2, std::move(draws), thresholds)});
}

}  // namespace
}  // namespace espalier::samplers::gp
