#include "tuner/simulator/emulated_load.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "base/random.h"

namespace espalier {

namespace {

double Number(const Parameters& parameters, const char* name, double otherwise) {
  const ParameterValue* value = Find(parameters, name);
  if (value == nullptr) return otherwise;
  if (const auto* whole = std::get_if<std::int64_t>(value)) return static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(value)) return *real;
  return otherwise;
}

class EmulatedTruth : public TrialTruth {
 public:
  EmulatedTruth(const EmulatedLoadOptions& options, const Trial& trial)
      : options_(options),
        lr_(Number(trial.parameters, "lr", 0.1)),
        batch_(std::max<std::int64_t>(
            1, static_cast<std::int64_t>(Number(trial.parameters, "batch_size", 128)))),
        seed_(MixSeed(static_cast<std::uint64_t>(trial.number), "trial")) {}

  BatchBounds bounds() const override {
    return {.initial = batch_,
            .max_global = batch_,
            .min_atomic = 1,
            .max_atomic = batch_,
            .accumulation = true};
  }
  std::int64_t steps() const override { return options_.epochs; }

  // The longest share of a batch is what the group waits for.
  Pace On(int, int replicas) const override {
    const EmulatedProfile& p = options_.profile;
    const std::int64_t share = (batch_ + replicas - 1) / replicas;
    const double grad_s = p.alpha_c_s + p.beta_c_s * static_cast<double>(share);
    const double sync_s = replicas > 1 ? p.alpha_r_s + p.beta_r_s * (replicas - 2) : 0;
    const std::int64_t iterations = (options_.samples + batch_ - 1) / batch_;
    return {static_cast<double>(iterations), grad_s + sync_s, grad_s};
  }

  double ValueAfter(std::int64_t step) const override {
    const EmulatedProfile& p = options_.profile;
    const auto batch = static_cast<double>(batch_);
    const auto epochs = static_cast<double>(step);
    const double off = std::log10(lr_ / (p.best_lr * std::sqrt(batch / 128)));
    const double end = 0.06 + 0.05 * off * off + 0.002 * std::log2(std::max(1.0, batch / 128));
    const double efficiency = (p.noise_scale + 128) / (p.noise_scale + batch);
    const double curve = 0.9 * std::pow(1 + 0.7 * epochs * efficiency, -1.1);
    Random noise(MixSeed(seed_, static_cast<std::uint64_t>(epochs * 1000)));
    return std::min(0.9, end + curve + p.jitter * noise.Normal());
  }

 private:
  const EmulatedLoadOptions& options_;
  double lr_;
  std::int64_t batch_;
  std::uint64_t seed_;
};

class EmulatedLoad : public Workload {
 public:
  explicit EmulatedLoad(EmulatedLoadOptions options) : options_(std::move(options)) {}
  StudySpec Study() const override { return options_.study; }
  std::unique_ptr<TrialTruth> Begin(const Trial& trial) override {
    return std::make_unique<EmulatedTruth>(options_, trial);
  }

 private:
  const EmulatedLoadOptions options_;
};

}  // namespace

std::unique_ptr<Workload> MakeEmulatedLoad(EmulatedLoadOptions options) {
  return std::make_unique<EmulatedLoad>(std::move(options));
}

}  // namespace espalier
