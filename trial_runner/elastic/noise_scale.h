#pragma once

#include <cstdint>
#include <optional>

namespace espalier {

// An estimate of |true gradient|^2 and of the trace of one sample's gradient covariance.
struct NoiseEstimate {
  double sqr = 0;
  double trace = 0;
};

// What an optimizer step shows about the noise. Microbatch i of b_i samples has the mean gradient
// g_i; the step's gradient is G = sum (b_i / B) g_i.
struct NoiseObservation {
  double local_sqr_mean = 0;  // mean over microbatches of |g_i|^2
  double inverse_mean = 0;    // mean over microbatches of 1 / b_i
  double total_sqr = 0;       // |G|^2
  double samples = 0;         // B
};

// E|g_i|^2 = sqr + trace / b_i and E|G|^2 = sqr + trace / B, solved for both; with equal
// microbatches this is the estimator of McCandlish et al. (2018), appendix A. Unbiased; either may
// come out negative. None if one microbatch was the whole step: nothing to compare.
std::optional<NoiseEstimate> EstimateNoise(const NoiseObservation& seen);

// For steps of a single microbatch: this gradient g and the previous one p, both of about `samples`
// samples, treated as two microbatches of one step twice as large. Biased by the parameters'
// movement in between.
std::optional<NoiseEstimate> EstimateNoiseFromPrevious(double sqr, double previous_sqr,
                                                       double product, double samples);

// Bias-corrected exponential averages of the estimates. A step of `scale` times the initial batch
// size fades them by 0.999^scale, so the memory spans samples and not steps. Estimates from
// previous gradients are biased: the first unbiased one after them starts the averages anew.
class NoiseAverages {
 public:
  NoiseAverages() = default;

  void Add(const NoiseEstimate& estimate, double scale, bool biased);

  bool empty() const { return weight_ <= 0; }
  // |true gradient|^2, at least 0. 1 before any estimate.
  double Sqr() const;
  // Trace of the covariance of a gradient of `batch_size` samples, at least 1e-6. 0 before any
  // estimate.
  double Var(double batch_size) const;

  // For checkpoint and broadcast.
  struct State {
    double sqr = 0, trace = 0, weight = 0, biased = 0;
  };
  State state() const { return {sqr_, trace_, weight_, biased_ ? 1.0 : 0.0}; }
  explicit NoiseAverages(const State& s)
      : sqr_(s.sqr), trace_(s.trace), weight_(s.weight), biased_(s.biased != 0) {}

 private:
  double sqr_ = 0;  // weighted sums
  double trace_ = 0;
  double weight_ = 0;
  bool biased_ = false;
};

// How much further a step of `scale` times the base batch gets than one of the base batch, given
// |true gradient|^2 and the covariance's trace at the base batch: (var + sqr) / (var/scale + sqr),
// from 1 (no noise) to scale (noise alone). AdaScale (Johnson et al. 2020).
double Gain(double sqr, double var, double scale);

}  // namespace espalier
