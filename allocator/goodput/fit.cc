#include "allocator/goodput/fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <span>
#include <vector>

#include "allocator/goodput/bounded_bfgs.h"

namespace espalier {

namespace {

// Variables are the logarithms of the parameters: the bounds below become plain boxes, and
// parameters that differ by orders of magnitude have the same scale.
enum Variable : std::size_t { kAlphaC, kBetaC, kAlphaN, kBetaN, kAlphaR, kBetaR, kGamma };

constexpr double kSmallest = 1e-8;
constexpr double kLargest = 1e6;
constexpr double kMaxGamma = 10;
constexpr double kGammaWeight = 1e-3;
constexpr double kBetaWeight = 1e-2;
// Rounds the corner of the root at a perfect fit; far below any timing noise.
constexpr double kSquaredErrorFloor = 1e-12;
// A parameter that starts at its lower bound has no slope in its logarithm and would stay there.
constexpr double kSmallestStart = 1e-5;

FitVector ToLogs(const ThroughputParams& p) {
  return FitVector{std::log(p.alpha_c), std::log(p.beta_c), std::log(p.alpha_n), std::log(p.beta_n),
                   std::log(p.alpha_r), std::log(p.beta_r), std::log(p.gamma)};
}

ThroughputParams FromLogs(const FitVector& x) {
  return {.alpha_c = std::exp(x[kAlphaC]),
          .beta_c = std::exp(x[kBetaC]),
          .alpha_n = std::exp(x[kAlphaN]),
          .beta_n = std::exp(x[kBetaN]),
          .alpha_r = std::exp(x[kAlphaR]),
          .beta_r = std::exp(x[kBetaR]),
          .gamma = std::exp(x[kGamma])};
}

// A root mean square over the observations, and its gradient.
class RootMeanSquare {
 public:
  void Add(double error, const FitVector& slope) {
    squares_ += error * error;
    for (std::size_t i = 0; i < kFitVariables; ++i) slopes_[i] += error * slope[i];
  }
  double AddTo(double count, FitVector& gradient) const {
    const double root = std::sqrt(squares_ / count + kSquaredErrorFloor);
    for (std::size_t i = 0; i < kFitVariables; ++i) gradient[i] += slopes_[i] / (count * root);
    return root;
  }

 private:
  double squares_ = 0;
  FitVector slopes_{};
};

double AddPriors(const ThroughputParams& p, FitVector& gradient) {
  const double overlap = p.gamma - 1;
  gradient[kGamma] += 2 * kGammaWeight * overlap * p.gamma;
  double value = kGammaWeight * overlap * overlap;
  const auto ratio = [&](double alpha, double beta, Variable alpha_at, Variable beta_at) {
    const double square = (beta / alpha) * (beta / alpha);
    gradient[beta_at] += 2 * kBetaWeight * square;
    gradient[alpha_at] -= 2 * kBetaWeight * square;
    value += kBetaWeight * square;
  };
  ratio(p.alpha_n, p.beta_n, kAlphaN, kBetaN);
  ratio(p.alpha_r, p.beta_r, kAlphaR, kBetaR);
  return value;
}

double ErrorAndGradient(std::span<const ProfileObservation> observations, const FitVector& x,
                        FitVector& gradient) {
  const ThroughputParams p = FromLogs(x);
  RootMeanSquare grad_error;
  RootMeanSquare optim_error;
  for (const ProfileObservation& o : observations) {
    const auto m = static_cast<double>(o.key.atomic_batch_size);
    const double grad = GradTime(p, m);
    const double sync = SyncTime(p, o.key.nodes, o.key.replicas);
    const double optim = OptimTime(p, o.key.nodes, o.key.replicas, m);

    FitVector grad_slope{};
    grad_slope[kAlphaC] = p.alpha_c / grad;
    grad_slope[kBetaC] = p.beta_c * m / grad;
    grad_error.Add(std::log(grad / o.grad_time_s), grad_slope);

    // The logarithm of the overlapped time is a soft maximum; `weight` is the gradient's share.
    const double weight = 1 / (1 + std::pow(sync / grad, p.gamma));
    FitVector slope{};
    slope[kAlphaC] = weight * grad_slope[kAlphaC];
    slope[kBetaC] = weight * grad_slope[kBetaC];
    if (o.key.replicas > 1) {
      const bool nodes = o.key.nodes > 1;
      const double alpha = nodes ? p.alpha_n : p.alpha_r;
      slope[nodes ? kAlphaN : kAlphaR] = (1 - weight) * alpha / sync;
      slope[nodes ? kBetaN : kBetaR] = (1 - weight) * (sync - alpha) / sync;
    }
    slope[kGamma] = weight * std::log(grad) + (1 - weight) * std::log(sync) - std::log(optim);
    optim_error.Add(std::log(optim / o.optim_time_s), slope);
  }
  gradient.fill(0);
  const auto count = static_cast<double>(observations.size());
  double value = grad_error.AddTo(count, gradient);
  value += optim_error.AddTo(count, gradient);
  return value + AddPriors(p, gradient);
}

struct Seen {
  bool sizes = false;  // more than one atomic batch size
  bool between_nodes = false;
  bool within_node = false;  // several replicas on one node
  bool beyond_two = false;   // more than two replicas
};

Seen WhatIsSeen(std::span<const ProfileObservation> observations) {
  Seen seen;
  std::set<std::int64_t> sizes;
  for (const ProfileObservation& o : observations) {
    sizes.insert(o.key.atomic_batch_size);
    seen.between_nodes |= o.key.nodes > 1;
    seen.within_node |= o.key.nodes == 1 && o.key.replicas > 1;
    seen.beyond_two |= o.key.replicas > 2;
  }
  seen.sizes = sizes.size() > 1;
  return seen;
}

FitProblem MakeProblem(std::span<const ProfileObservation> observations, const Seen& seen) {
  FitProblem problem;
  problem.objective = [observations](const FitVector& x, FitVector& gradient) {
    return ErrorAndGradient(observations, x, gradient);
  };
  problem.lower.fill(std::log(kSmallest));
  problem.upper.fill(std::log(kLargest));
  problem.lower[kGamma] = 0;
  problem.upper[kGamma] = std::log(kMaxGamma);
  const auto fix = [&](Variable variable, double value) {
    problem.lower[variable] = problem.upper[variable] = std::log(value);
  };
  if (!seen.sizes) {
    double mean = 0;
    for (const ProfileObservation& o : observations) mean += o.grad_time_s;
    fix(kAlphaC, std::max(mean / static_cast<double>(observations.size()) / 2, kSmallest));
  }
  if (!seen.between_nodes) fix(kAlphaN, kSmallest);
  if (!seen.between_nodes || !seen.beyond_two) fix(kBetaN, kSmallest);
  if (!seen.within_node) fix(kAlphaR, kSmallest);
  if (!seen.within_node || !seen.beyond_two) fix(kBetaR, kSmallest);
  return problem;
}

FitVector WarmStart(const ThroughputParams& p) {
  FitVector x = ToLogs(p);
  for (std::size_t i = kAlphaC; i < kGamma; ++i) {
    x[i] = std::isfinite(x[i]) ? std::max(x[i], std::log(kSmallestStart)) : 0;
  }
  x[kGamma] = std::isfinite(x[kGamma]) ? std::max(x[kGamma], std::log(1.001)) : 0;
  return x;
}

}  // namespace

ThroughputParams Fit(const Profile& profile, const std::optional<ThroughputParams>& warm_start) {
  const std::vector<ProfileObservation> observations = profile.Observations();
  if (observations.empty()) return warm_start.value_or(ThroughputParams{});
  const Seen seen = WhatIsSeen(observations);
  const FitProblem problem = MakeProblem(observations, seen);
  FitSolution best = MinimizeWithinBounds(problem, ToLogs(ThroughputParams{}));
  if (warm_start) {
    const FitSolution warm = MinimizeWithinBounds(problem, WarmStart(*warm_start));
    if (warm.value < best.value) best = warm;
  }
  ThroughputParams p = FromLogs(best.x);
  if (!seen.between_nodes) {
    // Between nodes it cannot be faster than within one.
    p.alpha_n = std::max(p.alpha_n, 1.1 * p.alpha_r);
    p.beta_n = std::max(p.beta_n, 1.1 * p.beta_r);
  }
  return p;
}

double FitObjective(const Profile& profile, const ThroughputParams& params) {
  const std::vector<ProfileObservation> observations = profile.Observations();
  if (observations.empty()) return 0;
  FitVector gradient;
  return ErrorAndGradient(observations, ToLogs(params), gradient);
}

}  // namespace espalier
