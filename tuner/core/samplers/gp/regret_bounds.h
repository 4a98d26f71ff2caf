#pragma once

#include <Eigen/Core>

#include "tuner/core/samplers/gp/gaussian_process.h"

namespace espalier::samplers::gp {

// Bounds of regret.h, of processes that are given. Values are standardised, larger is better, and
// so are the bounds.

// The largest upper confidence bound, over the observed points of the process and over `drawn`,
// less the largest lower one over the observed points (Makarova et al., Automatic Termination for
// Hyperparameter Optimization, AutoML 2022, section 3), with the width of Srinivas et al., ICML
// 2010, theorem 1, a fifth of its square, and the number of axes for that of the points. All of
// them hold with a probability of 1 - delta.
double RegretBoundOf(const GaussianProcess& process, const Points& observed, const Points& drawn,
                     double delta);

// What is known of a search before and after its last trial.
struct LastTrial {
  const GaussianProcess& before;  // given all points but the last
  const GaussianProcess& after;   // given all
  const Points& points;           // at least two, in the order of their trials
  const Eigen::VectorXd& values;  // theirs
};

// Bounds what the last trial has changed in the expected minimum simple regret (Ishibashi et al.,
// A stopping criterion for Bayesian optimization by the gap of expected minimum simple regrets,
// AISTATS 2023, theorem 1 with the divergence of eq. 4, algorithm 1).
double RegretChangeBoundOf(const LastTrial& trial, const Points& drawn, double delta);

}  // namespace espalier::samplers::gp
