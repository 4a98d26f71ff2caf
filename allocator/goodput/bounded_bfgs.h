#pragma once

#include <array>
#include <cstddef>
#include <functional>

namespace espalier {

// Minimises a smooth function of a few variables within bounds: a projected BFGS method (Bertsekas
// 1982) with a dense Hessian estimate. A variable whose bounds are equal stays there. Written for
// the seven variables of the throughput model, where a general library would be the larger part.
inline constexpr std::size_t kFitVariables = 7;
using FitVector = std::array<double, kFitVariables>;

struct FitProblem {
  // The value at x; fills `gradient`. Called with x within the bounds only.
  std::function<double(const FitVector& x, FitVector& gradient)> objective;
  FitVector lower{};
  FitVector upper{};
  int max_iterations = 200;
};

struct FitSolution {
  FitVector x{};
  double value = 0;
};

// Starts at `start`, moved into the bounds. Ends when a step no longer helps or at max_iterations;
// the solution is never worse than the start.
FitSolution MinimizeWithinBounds(const FitProblem& problem, FitVector start);

}  // namespace espalier
