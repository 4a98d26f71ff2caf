// What a Gaussian process that varies with time says is what NumPy says: see record_pb2.py.

#include "tuner/core/population/time_varying_process.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/core/samplers/optuna/recorded.h"

namespace espalier::populations {
namespace {

constexpr Eigen::Index kTimedAxes = 3;

Eigen::MatrixXd TimedTable(const std::string& name, Eigen::Index columns) {
  static const espalier::testing::Recorded recorded(ESPALIER_RECORDED_PB2);
  const std::vector<double>& numbers = recorded[name];
  using ByRow = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  return Eigen::Map<const ByRow>(numbers.data(),
                                 static_cast<Eigen::Index>(numbers.size()) / columns, columns);
}

TimedPoints TimedTable(const std::string& name) {
  return {TimedTable(name, kTimedAxes), TimedTable(name + ".times", 1)};
}

TimedKernel RecordedKernel() {
  const Eigen::VectorXd numbers = TimedTable("parameters", 1);
  return {{false, false, true},
          {numbers.head(kTimedAxes), numbers[kTimedAxes], numbers[kTimedAxes + 1]},
          numbers[kTimedAxes + 2]};
}

TEST(TimeVaryingProcess, MeanIsOfWhatWasSeenAndVarianceAlsoOfWhatIsPending) {
  const TimeVaryingProcess process(RecordedKernel(), TimedTable("seen"),
                                   TimedTable("seen.values", 1), TimedTable("pending"));
  const TimeVaryingProcess::Posterior posterior = process.At(TimedTable("asked"));
  EXPECT_TRUE(posterior.mean.isApprox(TimedTable("mean", 1), 1e-9)) << posterior.mean;
  EXPECT_TRUE(posterior.variance.isApprox(TimedTable("variance", 1), 1e-9)) << posterior.variance;
}

TEST(TimeVaryingProcess, KnowsNothingBeforeAnythingIsSeen) {
  const TimedPoints none{Points(0, kTimedAxes), Eigen::VectorXd(0)};
  const TimeVaryingProcess process(RecordedKernel(), none, Eigen::VectorXd(0), none);
  const TimeVaryingProcess::Posterior posterior = process.At(TimedTable("asked"));
  EXPECT_TRUE(posterior.mean.isZero());
  EXPECT_TRUE(posterior.variance.isConstant(RecordedKernel().parameters.scale));
}

TEST(TimeVaryingProcess, LikelihoodAndItsGradientAreNumPys) {
  const TimedLikelihood likelihood =
      LikelihoodOf(TimedTable("seen"), TimedTable("seen.values", 1), RecordedKernel());
  EXPECT_NEAR(likelihood.log_likelihood, TimedTable("likelihood", 1)(0), 1e-9);
  EXPECT_NEAR(likelihood.log_prior, TimedTable("prior", 1)(0), 1e-9);
  EXPECT_TRUE(likelihood.gradient.isApprox(TimedTable("gradient", 1), 1e-6)) << likelihood.gradient;
}

TEST(TimeVaryingProcess, FitIsNoLessLikelyThanItsStartAndWithinBounds) {
  const TimedPoints seen = TimedTable("seen");
  const Eigen::VectorXd values = TimedTable("seen.values", 1);
  const TimedKernel fitted = Fitted(seen, values, RecordedKernel());
  const auto sum = [&](const TimedKernel& kernel) {
    const TimedLikelihood likelihood = LikelihoodOf(seen, values, kernel);
    return likelihood.log_likelihood + likelihood.log_prior;
  };
  EXPECT_GT(sum(fitted), sum(RecordedKernel()));
  EXPECT_LE(fitted.parameters.noise, 1);
  EXPECT_LE(fitted.forgetting, 0.5);
}

}  // namespace
}  // namespace espalier::populations
