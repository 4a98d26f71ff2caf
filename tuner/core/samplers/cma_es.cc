#include "tuner/core/samplers/cma_es.h"

#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"
#include "search_spaces/gaussian.h"

namespace espalier::samplers {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double kTiny = 1e-8;
constexpr double kMostSigma = 1e32;
// Draws are rarely longer than the square root of the dimensions, and this many more never.
constexpr double kBeyondDraws = 6;

Index ToIndex(std::size_t n) { return static_cast<Index>(n); }

// Equations 49 to 53: the worse half of a generation has negative weights, as large as the
// covariance bears.
VectorXd SignedWeights(const VectorXd& raw, double n, const CmaRates& rates) {
  const double mu_eff_minus = std::pow(raw.tail(raw.size() - rates.parents).sum(), 2) /
                              raw.tail(raw.size() - rates.parents).squaredNorm();
  const double alpha =
      std::min({1 + rates.c_1 / rates.c_mu, 1 + 2 * mu_eff_minus / (rates.mu_eff + 2),
                (1 - rates.c_1 - rates.c_mu) / (n * rates.c_mu)});
  const double positive = raw.cwiseMax(0).sum();
  const double negative = -raw.cwiseMin(0).sum();
  return (raw.array() >= 0).select(raw / positive, raw * (alpha / negative));
}

CmaRates FullRates(double n, Index population) {
  CmaRates rates;
  rates.parents = population / 2;
  VectorXd raw(population);
  for (Index i = 0; i < population; ++i) {
    raw[i] =
        std::log(static_cast<double>(population + 1) / 2) - std::log(static_cast<double>(i + 1));
  }
  const auto parents = raw.head(rates.parents);
  rates.mu_eff = std::pow(parents.sum(), 2) / parents.squaredNorm();
  const double mu = rates.mu_eff;
  rates.c_1 = 2 / ((n + 1.3) * (n + 1.3) + mu);
  rates.c_mu = std::min(1 - rates.c_1 - kTiny, 2 * (mu - 2 + 1 / mu) / ((n + 2) * (n + 2) + mu));
  rates.c_sigma = (mu + 2) / (n + mu + 5);
  rates.c_c = (4 + mu / n) / (n + 4 + 2 * mu / n);
  rates.weights = SignedWeights(raw, n, rates);
  return rates;
}

// Ros and Hansen 2008: as in Hansen's tutorial of that time, with the rate of the
// diagonal (n + 2) / 3 times as large.
CmaRates SeparableRates(double n, Index population) {
  CmaRates rates;
  rates.parents = population / 2;
  rates.weights = VectorXd::Zero(population);
  for (Index i = 0; i < rates.parents; ++i) {
    rates.weights[i] =
        std::log(static_cast<double>(rates.parents + 1)) - std::log(static_cast<double>(i + 1));
  }
  rates.weights /= rates.weights.sum();
  rates.mu_eff = 1 / rates.weights.squaredNorm();
  const double mu = rates.mu_eff;
  rates.c_1 = 2 / ((n + 1.3) * (n + 1.3) + mu);
  const double full = 2 / mu / std::pow(n + std::sqrt(2.0), 2) +
                      (1 - 1 / mu) * std::min(1.0, (2 * mu - 1) / ((n + 2) * (n + 2) + mu));
  rates.c_mu = (n + 2) / 3 * full;
  rates.c_sigma = (mu + 2) / (n + mu + 3);
  rates.c_c = 4 / (n + 4);
  return rates;
}

}  // namespace

std::size_t CmaPopulation(std::size_t dimensions) {
  return 4 + static_cast<std::size_t>(std::floor(3 * std::log(static_cast<double>(dimensions))));
}

CmaRates RatesOf(CmaVariant variant, std::size_t dimensions, std::size_t population) {
  ESPALIER_CHECK(dimensions > 0 && population > 1, "a generation of points in a space");
  const auto n = static_cast<double>(dimensions);
  CmaRates rates = variant == CmaVariant::kSeparable ? SeparableRates(n, ToIndex(population))
                                                     : FullRates(n, ToIndex(population));
  rates.d_sigma =
      1 + 2 * std::max(0.0, std::sqrt((rates.mu_eff - 1) / (n + 1)) - 1) + rates.c_sigma;
  return rates;
}

CmaStart WarmStart(const MatrixXd& points) {
  constexpr double kShare = 0.1;  // gamma
  constexpr double kPrior = 0.1;  // alpha: how far around each point the distribution reaches
  ESPALIER_CHECK(points.cols() > 0 && points.rows() > 0, "a warm start needs a point");
  const auto share = static_cast<Index>(std::floor(static_cast<double>(points.cols()) * kShare));
  const auto best = points.leftCols(std::max<Index>(share, 1));
  const Index n = points.rows();
  const VectorXd mean = best.rowwise().mean();
  const MatrixXd around = best.colwise() - mean;
  const MatrixXd covariance = kPrior * kPrior * MatrixXd::Identity(n, n) +
                              around * around.transpose() / static_cast<double>(best.cols());
  // sigma^2 is the geometric mean of the variances along the axes.
  const Eigen::SelfAdjointEigenSolver<MatrixXd> solver(covariance, Eigen::EigenvaluesOnly);
  const double log_volume = solver.eigenvalues().array().log().sum();
  const double variance = std::exp(log_volume / static_cast<double>(n));
  return {mean, std::sqrt(variance), covariance / variance};
}

CmaEs::CmaEs(const CmaStart& start, std::size_t population, CmaVariant variant)
    : variant_(variant),
      rates_(RatesOf(variant, static_cast<std::size_t>(start.mean.size()), population)),
      mean_(start.mean),
      sigma_(start.sigma),
      first_sigma_(start.sigma) {
  const Index n = mean_.size();
  const auto size = static_cast<double>(n);
  chi_ = std::sqrt(size) * (1 - 1 / (4 * size) + 1 / (21 * size * size));
  p_sigma_ = p_c_ = VectorXd::Zero(n);
  if (variant == CmaVariant::kSeparable) {
    c_ = MatrixXd::Ones(n, 1);
    if (start.covariance.size() > 0) c_ = start.covariance.diagonal();
  } else {
    c_ = start.covariance.size() > 0 ? start.covariance : MatrixXd(MatrixXd::Identity(n, n));
  }
  Decompose();
  const double generations = std::ceil(30 * size / static_cast<double>(population));
  recent_.assign(2 * (10 + static_cast<std::size_t>(generations)), 0);
  if (variant != CmaVariant::kAdaptedRates) return;
  mean_rate_.average = MatrixXd::Zero(n, 1);
  covariance_rate_.average = MatrixXd::Zero(n, n);
}

MatrixXd CmaEs::Covariance() const {
  return variant_ == CmaVariant::kSeparable ? MatrixXd(c_.col(0).asDiagonal()) : c_;
}

VectorXd CmaEs::Variances() const {
  return variant_ == CmaVariant::kSeparable ? VectorXd(c_.col(0)) : VectorXd(c_.diagonal());
}

void CmaEs::Decompose() {
  if (variant_ == CmaVariant::kSeparable) {
    d_ = (c_.array() < 0).select(kTiny, c_).cwiseSqrt();
    return;
  }
  c_ = (0.5 * (c_ + c_.transpose())).eval();
  const Eigen::SelfAdjointEigenSolver<MatrixXd> solver(c_);
  b_ = solver.eigenvectors();
  const VectorXd& squares = solver.eigenvalues();
  d_ = (squares.array() < 0).select(kTiny, squares).cwiseSqrt();
  if ((squares.array() < 0).any()) c_ = b_ * d_.cwiseAbs2().asDiagonal() * b_.transpose();
}

VectorXd CmaEs::Whitened(const VectorXd& y) const {
  if (variant_ == CmaVariant::kSeparable) return y.cwiseQuotient(d_);
  return b_ * (b_.transpose() * y).cwiseQuotient(d_);
}

VectorXd CmaEs::Draw(Random& random) const {
  // By the quantile: the generator's own normal draw takes two numbers for each.
  VectorXd z(mean_.size());
  for (double& one : z) one = NormalQuantile(std::max(random.Uniform(), 0x1.0p-54));
  z = z.cwiseProduct(d_).eval();
  if (variant_ == CmaVariant::kSeparable) return mean_ + sigma_ * z;
  return mean_ + sigma_ * (b_ * z);
}

// In units of sigma, from the mean.
MatrixXd CmaEs::Steps(const MatrixXd& points) const {
  MatrixXd steps = (points.colwise() - mean_) / sigma_;
  const double longest = std::sqrt(static_cast<double>(mean_.size())) + kBeyondDraws;
  for (Index i = 0; i < steps.cols(); ++i) {
    const double length = Whitened(steps.col(i)).norm();
    if (length > longest) steps.col(i) *= longest / length;
  }
  return steps;
}

struct CmaEs::Before {
  VectorXd mean;
  double sigma;
  MatrixXd covariance;    // sigma^2 C
  MatrixXd inverse_root;  // of that
};

void CmaEs::Tell(const MatrixXd& points, double best, double worst) {
  ESPALIER_CHECK(points.cols() == rates_.weights.size() && points.rows() == mean_.size(),
                 "a generation is told whole");
  CmaEs learnt = *this;
  learnt.Learn(Steps(points));
  if (learnt.Finite()) *this = std::move(learnt);
  ++generation_;
  const std::size_t at = 2 * (generation_ % (recent_.size() / 2));
  recent_[at] = best;
  recent_[at + 1] = worst;
}

void CmaEs::Learn(const MatrixXd& steps) {
  const auto n = static_cast<double>(mean_.size());
  Before before{mean_, sigma_, {}, {}};
  if (variant_ == CmaVariant::kAdaptedRates) {
    before.covariance = sigma_ * sigma_ * c_;
    before.inverse_root = b_ * (sigma_ * d_).cwiseInverse().asDiagonal() * b_.transpose();
  }
  // Selection and recombination: equations 41 and 42.
  const VectorXd step = steps.leftCols(rates_.parents) * rates_.weights.head(rates_.parents);
  mean_ += sigma_ * step;
  // Control of the step size: equations 43 and 44.
  p_sigma_ = (1 - rates_.c_sigma) * p_sigma_ +
             std::sqrt(rates_.c_sigma * (2 - rates_.c_sigma) * rates_.mu_eff) * Whitened(step);
  const double length = p_sigma_.norm();
  sigma_ *= std::exp(rates_.c_sigma / rates_.d_sigma * (length / chi_ - 1));
  sigma_ = std::min(sigma_, kMostSigma);
  // Adaptation of the covariance. A long path has had the step size grow: it is not to make the
  // covariance grow as well (page 29).
  const auto age = static_cast<double>(generation_ + 2);
  const bool stalled =
      length / std::sqrt(1 - std::pow(1 - rates_.c_sigma, 2 * age)) >= (1.4 + 2 / (n + 1)) * chi_;
  p_c_ *= 1 - rates_.c_c;
  if (!stalled) p_c_ += std::sqrt(rates_.c_c * (2 - rates_.c_c) * rates_.mu_eff) * step;
  UpdateCovariance(steps, stalled);
  if (variant_ == CmaVariant::kAdaptedRates) AdaptRates(before);
  Decompose();
}

// Equations 46 and 47.
void CmaEs::UpdateCovariance(const MatrixXd& steps, bool stalled) {
  const VectorXd& weights = rates_.weights;
  const double kept = 1 + (stalled ? rates_.c_1 * rates_.c_c * (2 - rates_.c_c) : 0) - rates_.c_1 -
                      rates_.c_mu * weights.sum();
  if (variant_ == CmaVariant::kSeparable) {
    c_ = (kept * c_ + rates_.c_1 * p_c_.cwiseAbs2() + rates_.c_mu * (steps.cwiseAbs2() * weights))
             .eval();
    return;
  }
  VectorXd scaled = weights;
  for (Index i = 0; i < scaled.size(); ++i) {
    if (scaled[i] >= 0) continue;
    const double square = Whitened(steps.col(i)).squaredNorm();
    scaled[i] *= static_cast<double>(mean_.size()) / (square + kTiny);
  }
  c_ = (kept * c_ + rates_.c_1 * p_c_ * p_c_.transpose() +
        rates_.c_mu * steps * scaled.asDiagonal() * steps.transpose())
           .eval();
}

// Nomura et al. 2023: the rate follows what of the changes is not noise.
void CmaEs::Rate::Learn(const MatrixXd& change, double decay) {
  constexpr double kAlpha = 1.4;
  constexpr double kGamma = 0.1;
  average = (1 - decay) * average + decay * change;
  square = (1 - decay) * square + decay * change.squaredNorm();
  const double signal = average.squaredNorm();
  const double ratio = (signal - decay / (2 - decay) * square) / (square - signal);
  const double relative = std::clamp(ratio / kAlpha / rate - 1, -1.0, 1.0);
  rate = std::min(rate * std::exp(std::min(kGamma * rate, decay) * relative), 1.0);
}

void CmaEs::AdaptRates(const Before& before) {
  constexpr double kMeanDecay = 0.1;
  constexpr double kCovarianceDecay = 0.03;
  const VectorXd mean_change = mean_ - before.mean;
  const MatrixXd covariance_change = sigma_ * sigma_ * c_ - before.covariance;
  const double last_rate = mean_rate_.rate;
  mean_rate_.Learn(before.inverse_root * mean_change, kMeanDecay);
  covariance_rate_.Learn(
      before.inverse_root * covariance_change * before.inverse_root / std::sqrt(2.0),
      kCovarianceDecay);
  mean_ = before.mean + mean_rate_.rate * mean_change;
  const MatrixXd covariance = before.covariance + covariance_rate_.rate * covariance_change;
  // sigma is what of it is size, C what is shape.
  const Eigen::SelfAdjointEigenSolver<MatrixXd> solver(covariance, Eigen::EigenvaluesOnly);
  const double log_volume = solver.eigenvalues().array().log().sum();
  sigma_ = std::min(std::exp(log_volume / 2 / static_cast<double>(mean_.size())), kMostSigma);
  c_ = covariance / (sigma_ * sigma_);
  sigma_ *= last_rate / mean_rate_.rate;
}

bool CmaEs::Finite() const {
  return mean_.allFinite() && std::isfinite(sigma_) && sigma_ > 0 && c_.allFinite() &&
         d_.allFinite() && d_.minCoeff() > 0 && p_sigma_.allFinite() && p_c_.allFinite() &&
         std::isfinite(mean_rate_.rate) && std::isfinite(covariance_rate_.rate);
}

bool CmaEs::ShouldStop() const {
  constexpr double kFlat = 1e-12;
  constexpr double kDiverged = 1e4;
  constexpr double kMostCondition = 1e14;
  const double smallest = 1e-12 * first_sigma_;
  if (generation_ > recent_.size() / 2) {
    const auto [low, high] = std::minmax_element(recent_.begin(), recent_.end());
    if (*high - *low < kFlat) return true;
  }
  const VectorXd variances = Variances();
  if ((sigma_ * variances.array() < smallest).all() && (sigma_ * p_c_.array() < smallest).all()) {
    return true;
  }
  if (sigma_ * d_.maxCoeff() > kDiverged) return true;
  // A step along a coordinate, or along one axis of the distribution in turn, that is lost in
  // rounding.
  const VectorXd moved = mean_ + 0.2 * sigma_ * variances.cwiseSqrt();
  if ((moved.array() == mean_.array()).any()) return true;
  const auto axis = static_cast<Index>(generation_ % dimensions());
  const VectorXd along = variant_ == CmaVariant::kSeparable ? VectorXd(VectorXd::Ones(mean_.size()))
                                                            : VectorXd(b_.col(axis));
  if (mean_ + 0.1 * sigma_ * d_[axis] * along == mean_) return true;
  return d_.maxCoeff() / d_.minCoeff() > kMostCondition;
}

}  // namespace espalier::samplers
