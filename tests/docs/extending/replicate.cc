#include "tuner/core/samplers/sampler.h"

namespace espalier::samplers {
namespace {

// Draws at random, but lets every few trials repeat the best one so far: how far its copies are
// apart is how much luck was in it.
class ReplicateSampler final : public Sampler {
 public:
  explicit ReplicateSampler(std::int64_t every) : every_(every) {}

  bool learns() const override { return true; }

  std::optional<Parameters> Suggest(const SamplerInput& input, Random& random) const override {
    const Observation* best = nullptr;
    for (const Observation& trial : input.ended) {
      if (!input.space.Validate(*trial.parameters).ok()) continue;  // a user's own trial
      if (!best || Better(input.direction, trial.value, best->value)) best = &trial;
    }
    if (best && input.trial_number % every_ == every_ - 1) return *best->parameters;
    return input.space.Sample(random);
  }

 private:
  std::int64_t every_;
};

}  // namespace

PluginRow<Sampler> ReplicateRow() {
  return {{.name = "replicate",
           .summary = "draws at random, and now and then the best so far again",
           .options = {{.name = "every",
                        .default_value = 8,
                        .least = 2,
                        .whole = true,
                        .meaning = "trials of which one is a copy of the best"}}},
          [](const OptionValues& options) {
            return std::make_unique<ReplicateSampler>(options.Whole("every"));
          }};
}

}  // namespace espalier::samplers
