#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "tuner/core/promise/curve_shapes.h"
#include "tuner/core/promise/forecast.h"

namespace espalier {

// How curves end, extrapolated from each one's own points: a curve is start * s(t) + end * (1 -
// s(t)) plus noise, with a shape s of a fixed family (curve_shapes.h). Start and end are jointly
// normal over a study's trials. That normal, the weight of each shape and the noise are learnt from
// the study's curves (empirical Bayes: a few rounds of expectation maximisation), with a prior
// worth a few curves; the end of one curve then has a closed posterior under each shape, and its
// forecast has the mixture's mean and variance. Curves that a pruner cut off count like any other,
// for as far as they go.
//
// No family has every curve in it. How far off it is on this study is measured: the later part of
// longer curves is foretold from their earlier part, and what the variance does not explain of
// the errors is added to forecasts, in proportion to the change that they foretell.
//
// Deterministic. One thread. The caller chooses what to learn from; the time grows with it: about
// half a millisecond for fifty curves of twenty points.
class Extrapolation {
 public:
  // Curves are not empty, their points ascend, and they end at `last_step`. `scale` is how far
  // typical costs of the study lie apart.
  Extrapolation(std::span<const std::vector<CurvePoint>> curves, double first_step,
                double last_step, double scale);

  struct Ending {
    double now = 0;  // the curve's cost at its newest point, without the noise
    Forecast end;    // the value that it will report at the last step
  };
  // The forecast for a curve with at least one point that goes on to the last step.
  Ending End(std::span<const CurvePoint> points);
  // The forecast for a trial of which nothing is known.
  Forecast Prior() const { return {prior_.end, prior_.end_v + noise_}; }

 private:
  // A normal distribution of (start, end).
  struct Pair {
    double start = 0, end = 0;                  // means
    double start_v = 1, both_v = 0, end_v = 1;  // variances, covariance
  };
  // Sums of the products of a curve's two coefficients and its costs.
  struct Sums {
    double ss = 0, se = 0, ee = 0, sy = 0, ey = 0, yy = 0;
    double points() const { return ss + 2 * se + ee; }
  };
  // A posterior and (up to a factor that all shapes share) its evidence, as exp(-misfit / 2) *
  // root.
  struct Posterior {
    Pair pair;
    double misfit = 0;
    double root = 1;
  };
  // The prior as precisions.
  struct Precision {
    double ss = 0, se = 0, ee = 0, s = 0, e = 0, misfit = 0;
  };

  void EstimateNoise(std::span<const std::vector<CurvePoint>> curves, double scale);
  void StartPrior(std::span<const std::vector<CurvePoint>> curves, double scale);
  void Learn(std::span<const std::vector<CurvePoint>> curves);
  void LearnRound(std::span<const std::vector<Sums>> curves, const Pair& first);
  void Backtest(std::span<const std::vector<CurvePoint>> curves);
  std::vector<Sums> SumsOf(std::span<const CurvePoint> points);
  Precision PriorPrecision() const;
  Posterior Update(const Precision& prior, const Sums& sums) const;
  // Fills posteriors_ and likely_ (the posterior weights of the shapes).
  void Infer(std::span<const Sums> sums);
  // The forecast for the curve that was inferred last, at `step`, without noise.
  Forecast At(double step);

  CurveShapes shapes_;
  std::vector<double> weights_;  // of the shapes over the study
  Pair prior_;
  double noise_ = 0;        // variance of one point about its curve
  double misfit_ = 0;       // likewise about the nearest shape
  double unexplained_ = 0;  // squared error by squared foretold change
  std::vector<Posterior> posteriors_;
  std::vector<double> likely_;
};

// Draws neighbouring points together until there are few, more finely where a curve is young.
std::vector<CurvePoint> Condense(std::span<const CurvePoint> points);

}  // namespace espalier
