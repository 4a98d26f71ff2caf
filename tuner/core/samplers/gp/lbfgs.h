#pragma once

#include <Eigen/Core>
#include <deque>

namespace espalier::samplers::gp {

// When a minimisation ends.
struct MinimizationLimits {
  double gradient = 1e-2;    // the largest part that may be left, past bounds aside
  double decrease = 2.2e-9;  // of the value in one iteration, relative
  int iterations = 200;
};

// Minimises a smooth function within bounds by limited-memory BFGS (Nocedal and Wright 2006,
// algorithm 7.4) on the variables that no bound holds, along the path that is bent at the bounds
// (Bertsekas 1982), with steps after Wolfe's weak conditions found by bisection (Lewis and Overton
// 2013). It asks for one evaluation at a time, so that several can be done side by side:
//   while (!minimization.done()) minimization.Tell(f(minimization.next()), gradient);
class Minimization {
 public:
  using Vector = Eigen::VectorXd;

  // Requires low <= high.
  Minimization(const Vector& start, Vector low, Vector high, MinimizationLimits limits);

  bool done() const { return done_; }
  const Vector& next() const { return next_; }  // where the function is to be evaluated
  // A value that is not finite counts as too large.
  void Tell(double value, const Vector& gradient);

  // The best so far. Requires that the first value was finite.
  const Vector& best() const { return at_; }
  double value() const { return value_; }

 private:
  struct Pair {
    Vector step;
    Vector change;  // of the gradient
  };

  // 1 where a variable may move, 0 where its bound holds it.
  Vector Free() const;
  void Accept(double value, const Vector& gradient);
  void StartSearch();
  Vector Direction(const Vector& free) const;
  void Propose(double length);

  const Vector low_;
  const Vector high_;
  const MinimizationLimits limits_;
  bool done_ = false;
  bool started_ = false;
  int iterations_ = 0;
  Vector at_;
  double value_ = 0;
  Vector gradient_;
  std::deque<Pair> pairs_;
  // The search along a direction.
  Vector direction_;
  Vector next_;
  double length_ = 1;
  double shortest_ = 0;  // lengths between which the step is sought
  double longest_ = 0;   // 0: none was too long so far
  int tried_ = 0;
};

}  // namespace espalier::samplers::gp
