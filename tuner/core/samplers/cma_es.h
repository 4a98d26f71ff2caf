#pragma once

#include <Eigen/Core>
#include <cstddef>
#include <vector>

#include "base/random.h"

namespace espalier::samplers {

// Weights and rates of (mu/mu_w, lambda)-CMA-ES, by Hansen 2016 ("The CMA Evolution Strategy: A
// Tutorial", arXiv:1604.00772, table 1 and equations 48 to 58).
struct CmaRates {
  Eigen::VectorXd weights;   // of a generation's points, from the best one on
  Eigen::Index parents = 0;  // mu
  double mu_eff = 0;
  double c_sigma = 0;
  double d_sigma = 0;
  double c_c = 0;
  double c_1 = 0;
  double c_mu = 0;
};

enum class CmaVariant {
  kFull,
  // The covariance is a diagonal, which is learnt faster: Ros and Hansen 2008, "A simple
  // modification in CMA-ES achieving linear time and space complexity".
  kSeparable,
  // The rates of learning follow the ratio of signal to noise in what is learnt: Nomura, Akimoto
  // and Ono 2023, "CMA-ES with learning rate adaptation" (arXiv:2304.03473).
  kAdaptedRates,
};

// lambda by default: equation 48.
std::size_t CmaPopulation(std::size_t dimensions);
// Requires at least two points in a population.
CmaRates RatesOf(CmaVariant variant, std::size_t dimensions, std::size_t population);

// What a normal distribution starts with. Source: Nomura et al. 2021, "Warm starting CMA-ES for
// hyperparameter optimization" (arXiv:2012.06932), for one that is made of earlier points.
struct CmaStart {
  Eigen::VectorXd mean;
  double sigma = 0;
  Eigen::MatrixXd covariance;  // empty: the identity
};

// The distribution of the best tenth of points (at least one) and what is near them; the points
// are columns, the best first. Requires one or more.
CmaStart WarmStart(const Eigen::MatrixXd& points);

// A normal distribution that moves towards the better points of each generation that it is told,
// N(mean, sigma^2 C): the covariance matrix adaptation evolution strategy, in its variants as in
// version 0.13 of the Python package cmaes.
class CmaEs {
 public:
  CmaEs(const CmaStart& start, std::size_t population, CmaVariant variant);

  std::size_t dimensions() const { return static_cast<std::size_t>(mean_.size()); }
  std::size_t population() const { return static_cast<std::size_t>(rates_.weights.size()); }
  std::size_t generation() const { return generation_; }
  const Eigen::VectorXd& mean() const { return mean_; }
  double sigma() const { return sigma_; }
  Eigen::MatrixXd Covariance() const;  // C
  Eigen::VectorXd Variances() const;   // its diagonal
  // For what corrects the mean after a generation.
  void set_mean(Eigen::VectorXd mean) { mean_ = std::move(mean); }

  Eigen::VectorXd Draw(Random& random) const;

  // The points of a generation as columns, as many as the population, the best first, and the
  // losses of the best and the worst. A point that is farther from the mean than draws come is
  // taken as one in its direction (Hansen 2011, "Injecting external solutions into CMA-ES"). What
  // cannot be computed with changes nothing.
  void Tell(const Eigen::MatrixXd& points, double best, double worst);

  // Whether it has come to its end: it has converged, it diverges, or numbers do not tell its
  // points apart.
  bool ShouldStop() const;

 private:
  struct Before;

  void Decompose();
  Eigen::VectorXd Whitened(const Eigen::VectorXd& y) const;  // C^(-1/2) y
  Eigen::MatrixXd Steps(const Eigen::MatrixXd& points) const;
  void Learn(const Eigen::MatrixXd& steps);
  void UpdateCovariance(const Eigen::MatrixXd& steps, bool stalled);
  void AdaptRates(const Before& before);
  bool Finite() const;

  CmaVariant variant_;
  CmaRates rates_;
  double chi_ = 0;  // the expected length of a draw from N(0, I)
  Eigen::VectorXd mean_;
  double sigma_;
  double first_sigma_;
  Eigen::MatrixXd c_;  // n x n, or n x 1: a diagonal
  Eigen::MatrixXd b_;  // C = B D^2 B^T; empty: the identity
  Eigen::VectorXd d_;
  Eigen::VectorXd p_sigma_;
  Eigen::VectorXd p_c_;
  std::size_t generation_ = 0;
  std::vector<double> recent_;  // best and worst losses of the last generations

  // One of the two quantities whose rates are adapted.
  struct Rate {
    Eigen::MatrixXd average;  // of what was learnt, in the distribution's own units
    double square = 0;        // average of its squared length
    double rate = 1;
    void Learn(const Eigen::MatrixXd& change, double decay);
  };
  Rate mean_rate_;
  Rate covariance_rate_;
};

}  // namespace espalier::samplers
