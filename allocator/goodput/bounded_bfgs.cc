#include "allocator/goodput/bounded_bfgs.h"

#include <algorithm>
#include <cmath>

namespace espalier {

namespace {

constexpr std::size_t kN = kFitVariables;
using Matrix = std::array<FitVector, kN>;
using Mask = std::array<bool, kN>;

constexpr double kSufficientDecrease = 1e-4;
constexpr double kLongestStep = 4.0;  // in any one variable
constexpr double kGradientTolerance = 1e-7;
constexpr double kValueTolerance = 1e-10;

double Dot(const FitVector& a, const FitVector& b) {
  double sum = 0;
  for (std::size_t i = 0; i < kN; ++i) sum += a[i] * b[i];
  return sum;
}

Matrix Identity() {
  Matrix m{};
  for (std::size_t i = 0; i < kN; ++i) m[i][i] = 1;
  return m;
}

// Variables that may move: not held at a bound that the descent direction points beyond.
Mask FreeVariables(const FitProblem& problem, const FitVector& x, const FitVector& gradient) {
  Mask free{};
  for (std::size_t i = 0; i < kN; ++i) {
    const bool held_low = x[i] <= problem.lower[i] && gradient[i] >= 0;
    const bool held_high = x[i] >= problem.upper[i] && gradient[i] <= 0;
    free[i] = !held_low && !held_high;
  }
  return free;
}

// Solves hessian * d = -gradient over the free variables by Cholesky factorisation; the others get
// zero. False if the estimate is not positive definite there.
bool SolveDirection(const Matrix& hessian, const FitVector& gradient, const Mask& free,
                    FitVector& d) {
  Matrix l{};
  for (std::size_t i = 0; i < kN; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      const bool both = free[i] && free[j];
      double sum = both ? hessian[i][j] : (i == j ? 1.0 : 0.0);
      for (std::size_t k = 0; k < j; ++k) sum -= l[i][k] * l[j][k];
      if (i == j && !(sum > 1e-12)) return false;
      l[i][j] = i == j ? std::sqrt(sum) : sum / l[j][j];
    }
  }
  for (std::size_t i = 0; i < kN; ++i) {
    double sum = free[i] ? -gradient[i] : 0.0;
    for (std::size_t k = 0; k < i; ++k) sum -= l[i][k] * d[k];
    d[i] = sum / l[i][i];
  }
  for (std::size_t i = kN; i-- > 0;) {
    double sum = d[i];
    for (std::size_t k = i + 1; k < kN; ++k) sum -= l[k][i] * d[k];
    d[i] = sum / l[i][i];
  }
  return true;
}

// BFGS update with Powell's damping, which keeps the estimate positive definite.
void UpdateHessian(Matrix& hessian, const FitVector& step, FitVector change) {
  FitVector bs{};
  for (std::size_t i = 0; i < kN; ++i) bs[i] = Dot(hessian[i], step);
  const double sbs = Dot(step, bs);
  if (!(sbs > 1e-20)) return;
  const double sy = Dot(step, change);
  if (sy < 0.2 * sbs) {
    const double theta = 0.8 * sbs / (sbs - sy);
    for (std::size_t i = 0; i < kN; ++i) change[i] = theta * change[i] + (1 - theta) * bs[i];
  }
  const double curvature = Dot(step, change);
  for (std::size_t i = 0; i < kN; ++i) {
    for (std::size_t j = 0; j < kN; ++j) {
      hessian[i][j] += change[i] * change[j] / curvature - bs[i] * bs[j] / sbs;
    }
  }
}

struct Point {
  FitVector x{};
  FitVector gradient{};
  double value = 0;
};

// Backtracks along the projected path from `from` in direction d. False if nothing there is lower.
bool LineSearch(const FitProblem& problem, const Point& from, const FitVector& d, Point& to) {
  double longest = 0;
  for (const double v : d) longest = std::max(longest, std::abs(v));
  double length = longest > kLongestStep ? kLongestStep / longest : 1.0;
  for (int halving = 0; halving < 30; ++halving, length *= 0.5) {
    double predicted = 0;
    for (std::size_t i = 0; i < kN; ++i) {
      to.x[i] = std::clamp(from.x[i] + length * d[i], problem.lower[i], problem.upper[i]);
      predicted += from.gradient[i] * (to.x[i] - from.x[i]);
    }
    to.value = problem.objective(to.x, to.gradient);
    if (to.value < from.value + kSufficientDecrease * predicted) return true;
  }
  return false;
}

}  // namespace

FitSolution MinimizeWithinBounds(const FitProblem& problem, FitVector start) {
  Point at;
  for (std::size_t i = 0; i < kN; ++i) {
    at.x[i] = std::clamp(start[i], problem.lower[i], problem.upper[i]);
  }
  at.value = problem.objective(at.x, at.gradient);
  Matrix hessian = Identity();
  bool fresh = true;  // the Hessian estimate is still the identity
  for (int iteration = 0; iteration < problem.max_iterations; ++iteration) {
    const Mask free = FreeVariables(problem, at.x, at.gradient);
    double steepest = 0;
    for (std::size_t i = 0; i < kN; ++i) {
      if (free[i]) steepest = std::max(steepest, std::abs(at.gradient[i]));
    }
    if (steepest < kGradientTolerance) break;
    FitVector d{};
    Point next;
    const bool solved = SolveDirection(hessian, at.gradient, free, d);
    if (!solved || !LineSearch(problem, at, d, next)) {
      if (fresh) break;
      hessian = Identity();
      fresh = true;
      continue;
    }
    FitVector step{};
    FitVector change{};
    for (std::size_t i = 0; i < kN; ++i) {
      step[i] = next.x[i] - at.x[i];
      change[i] = next.gradient[i] - at.gradient[i];
    }
    const double gained = at.value - next.value;
    at = next;
    if (gained < kValueTolerance) {
      if (fresh) break;
      hessian = Identity();
      fresh = true;
      continue;
    }
    UpdateHessian(hessian, step, change);
    fresh = false;
  }
  return {at.x, at.value};
}

}  // namespace espalier
