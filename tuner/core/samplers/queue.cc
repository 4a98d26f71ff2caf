#include "tuner/core/samplers/table.h"

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

Row QueueRow() {
  return {"queue", {}, [](const Options&) -> std::unique_ptr<Sampler> {
            return std::make_unique<QueueSampler>();
          }};
}

}  // namespace espalier::samplers
