#include "tuner/simulator/poolbench.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace espalier {

namespace {

constexpr std::array<double, kPoolbenchWidths> kNoiseScale = {1500, 2500, 4000, 6000, 9000};
constexpr std::array<double, kPoolbenchWidths> kGradientCost = {0.9, 1.2, 2.0, 4.0, 9.0};
constexpr double kStartError = 0.9;
constexpr double kNoise = 0.002;
constexpr double kDiverges = 1.3;  // decades above the best learning rate
constexpr double kOverlap = 1.8;   // Pollux's gamma

double At(const std::array<double, kPoolbenchWidths>& table, int width) {
  return table.at(static_cast<std::size_t>(width));
}

// Each configuration has noise of its own, whatever is simulated around it.
std::uint64_t NoiseSeed(const PoolbenchConfiguration& c) {
  const auto lr = static_cast<std::uint64_t>(std::llrint((c.log10_lr + 16) * 1e9));
  return lr * 1'000'003 + static_cast<std::uint64_t>(c.log2_bs) * 10'007 +
         static_cast<std::uint64_t>(c.width);
}

}  // namespace

double PoolbenchNoiseScale(const PoolbenchConfiguration& c) { return At(kNoiseScale, c.width); }

PoolbenchConfiguration SamplePoolbench(Random& random) {
  PoolbenchConfiguration c;
  c.log10_lr = -5.0 + 5.0 * random.Uniform();
  c.log2_bs = 4 + static_cast<int>(9 * random.Uniform());
  c.log10_wd = -6.0 + 5.0 * random.Uniform();
  c.width = static_cast<int>(5 * random.Uniform());
  return c;
}

double Poolbench::BestLog10Lr(const PoolbenchConfiguration& c) const {
  return -2.6 + exponent_ * std::log10(static_cast<double>(c.batch()) / 128);
}

double Poolbench::FinalError(const PoolbenchConfiguration& c) const {
  const double off = c.log10_lr - (BestLog10Lr(c) - 0.15 * (c.width - 2));
  const double too_small = std::pow(std::max(-off, 0.0), 1.5);
  const double too_large = std::pow(std::max(off, 0.0), 2);
  const double error =
      0.060 + 0.03 * too_small + 0.09 * too_large + 0.004 * std::pow(c.log10_wd + 3.5, 2) +
      0.006 * (kPoolbenchWidths - 1 - c.width) + 0.0025 * std::pow(std::max(c.log2_bs - 9, 0), 2);
  return std::min(error, 0.9);
}

std::vector<double> Poolbench::Errors(const PoolbenchConfiguration& c) const {
  const double scale = PoolbenchNoiseScale(c);
  const double efficiency = (scale + 128) / (scale + static_cast<double>(c.batch()));
  const double end = FinalError(c);
  const double tau = 2.0 * (1 + std::abs(std::min(c.log10_lr + 2.6, 0.0)));
  const bool diverged = c.log10_lr - BestLog10Lr(c) > kDiverges;
  Random noise(NoiseSeed(c));
  std::vector<double> errors;
  errors.reserve(kPoolbenchEpochs);
  for (std::int64_t epoch = 1; epoch <= kPoolbenchEpochs; ++epoch) {
    const double worth = static_cast<double>(epoch) * efficiency;
    const double error = diverged ? kStartError
                                  : end + (kStartError - end) * std::pow(1 + worth / tau, -1.1) *
                                              std::exp(-worth / 60);
    errors.push_back(std::clamp(error + kNoise * noise.Normal(), 0.01, 0.95));
  }
  return errors;
}

PoolbenchIteration PoolbenchIterationOn(const PoolbenchConfiguration& c, int slots) {
  PoolbenchIteration step;
  step.grad_s = 0.004 + static_cast<double>(c.batch()) / slots * At(kGradientCost, c.width) * 4e-5;
  if (slots == 1) {
    step.total_s = step.grad_s;
    return step;
  }
  const double sync_s = 0.004 + 0.0007 * (slots - 2) + (slots > 4 ? 0.006 : 0.0);
  step.total_s =
      std::pow(std::pow(step.grad_s, kOverlap) + std::pow(sync_s, kOverlap), 1 / kOverlap);
  return step;
}

double PoolbenchEpochSeconds(const PoolbenchConfiguration& c, int slots) {
  return static_cast<double>(kPoolbenchSamples) / static_cast<double>(c.batch()) *
         PoolbenchIterationOn(c, slots).total_s;
}

}  // namespace espalier
