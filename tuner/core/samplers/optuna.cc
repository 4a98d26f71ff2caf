#include <utility>

#include "tuner/core/samplers/sampler.h"

namespace espalier::samplers {
namespace {

// Which of Optuna's samplers there are, and what they take, depends on the service's Python: what
// is wrong with name or options is found out by the first suggestion.
class OptunaSampler final : public Sampler {
 public:
  explicit OptunaSampler(OutsideSampler sampler) : sampler_(std::move(sampler)) {}

  std::optional<Parameters> Suggest(const SamplerInput&, Random&) const override {
    return std::nullopt;
  }
  const OutsideSampler* outside() const override { return &sampler_; }
  bool learns() const override { return true; }
  bool takes_objectives() const override { return true; }
  bool takes_constraints() const override { return true; }

 private:
  OutsideSampler sampler_;
};

}  // namespace

PluginRow<Sampler> OptunaRow() {
  return {{.name = "optuna",
           .summary = "any of Optuna's samplers, in a Python that the service is started with",
           .options = {{.name = "sampler",
                        .meaning = "its class, such as GPSampler (default: TPESampler)",
                        .text = true},
                       {.name = "package",
                        .meaning = "of a hub, the folder of its package: samplers/auto_sampler",
                        .text = true},
                       {.name = "options",
                        .meaning = "what its constructor takes, by name",
                        .object = true}}},
          [](const OptionValues& options) {
            return std::make_unique<OptunaSampler>(
                OutsideSampler{.name = options.Text("sampler"),
                               .package = options.Text("package"),
                               .options = options.Object("options")});
          }};
}

}  // namespace espalier::samplers
