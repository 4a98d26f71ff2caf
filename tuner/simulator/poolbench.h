#pragma once

#include <cstdint>
#include <vector>

#include "base/random.h"

namespace espalier {

// Poolbench: an analytic tuning workload whose learning curves, batch-size efficiency and scaling
// curves fit together. Every figure is the one that its Python original gives
// (tests/simulator/poolbench.py), noise included, to 1e-9. Pure.

inline constexpr std::int64_t kPoolbenchEpochs = 81;       // of a whole trial
inline constexpr std::int64_t kPoolbenchSamples = 50'000;  // an epoch
inline constexpr double kPoolbenchTarget = 0.085;          // an error few trials reach
inline constexpr int kPoolbenchWidths = 5;                 // of the network: index 0 to 4

struct PoolbenchConfiguration {
  double log10_lr = 0;  // -5 to 0
  int log2_bs = 0;      // of the global batch: 4 to 12
  double log10_wd = 0;  // weight decay: -6 to -1
  int width = 0;        // index
  std::int64_t batch() const { return std::int64_t{1} << log2_bs; }
};

// How the best learning rate grows with the batch.
enum class PoolbenchRule { kSqrt, kLinear };

class Poolbench {
 public:
  explicit Poolbench(PoolbenchRule rule = PoolbenchRule::kSqrt)
      : exponent_(rule == PoolbenchRule::kSqrt ? 0.5 : 1.0) {}

  double BestLog10Lr(const PoolbenchConfiguration& c) const;
  // Where the curve without noise tends to.
  double FinalError(const PoolbenchConfiguration& c) const;
  // Validation error after epochs 1 to kPoolbenchEpochs.
  std::vector<double> Errors(const PoolbenchConfiguration& c) const;

 private:
  double exponent_;
};

// The next configuration of a study: four draws of `random`, in a set order.
PoolbenchConfiguration SamplePoolbench(Random& random);

// Seconds of one iteration of the configuration's global batch on `slots` slots: computing and
// all-reduce, of which the parts before and of the all-reduce are told apart.
struct PoolbenchIteration {
  double grad_s = 0;   // forward and backward of a slot's share
  double total_s = 0;  // with the all-reduce, partly hidden behind it
};
PoolbenchIteration PoolbenchIterationOn(const PoolbenchConfiguration& c, int slots);
double PoolbenchEpochSeconds(const PoolbenchConfiguration& c, int slots);

// The gradient noise scale of a network of that width, in samples.
double PoolbenchNoiseScale(const PoolbenchConfiguration& c);

}  // namespace espalier
