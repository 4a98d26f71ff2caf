#include "tuner/core/samplers/sampler.h"

namespace espalier::samplers {
namespace {

// Clients decide what is tried: the pool runs what they enqueue, and the study goes on until it is
// stopped.
class QueueSampler final : public Sampler {
 public:
  std::optional<Parameters> Suggest(const SamplerInput&, Random&) const override {
    return std::nullopt;
  }
  bool draws() const override { return false; }
};

}  // namespace

PluginRow<Sampler> QueueRow() {
  return {{.name = "queue", .summary = "draws nothing: the pool runs what clients enqueue"},
          [](const OptionValues&) { return std::make_unique<QueueSampler>(); }};
}

}  // namespace espalier::samplers
