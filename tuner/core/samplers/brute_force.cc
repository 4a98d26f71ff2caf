#include "absl/strings/str_cat.h"
#include "tuner/core/samplers/configurations.h"

namespace espalier::samplers {
namespace {

// What to give instead of a distribution without an end to its values.
std::string FiniteTypes(const Distribution& distribution) {
  if (std::holds_alternative<Uniform>(distribution)) return "quniform, randint or choice";
  if (std::holds_alternative<LogUniform>(distribution)) return "qloguniform or choice";
  return "quniform, qloguniform, randint or choice";
}

// Every configuration of a finite space once, in an order that the study's seed decides: each trial
// has any of those that are left with the same probability. Values of parameters that an option
// does not bring are no configurations of their own.
class BruteForceSampler final : public Sampler {
 public:
  absl::Status Fits(const SearchSpace& space) const override {
    for (const auto& [name, distribution, condition] : space.dimensions()) {
      if (Cardinality(distribution)) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "sampler \"brute_force\" tries every value, and there is no end to those of \"", name,
          "\" (", std::string(TypeName(distribution)), "): give it a ", FiniteTypes(distribution),
          ", or the sampler \"grid\", whose \"points\" are values of each such parameter"));
    }
    const std::optional<std::uint64_t> count = space.Cardinality();
    if (count && *count <= kMostNumbered) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("sampler \"brute_force\" tries every configuration, and the space has more "
                     "than ",
                     kMostNumbered, ": give \"random\", which does not repeat any either"));
  }

  std::optional<Parameters> Suggest(const SamplerInput& input, Random& random) const override {
    const TriedConfigurations tried(input);
    if (!tried.numbered()) return input.space.Sample(random);  // a space that it does not fit
    if (tried.Exhausted()) return std::nullopt;
    return tried.DrawUntried(random);
  }
};

}  // namespace

PluginRow<Sampler> BruteForceRow() {
  return {{.name = "brute_force",
           .summary = "every configuration of a finite space once, in random order"},
          [](const OptionValues&) { return std::make_unique<BruteForceSampler>(); }};
}

}  // namespace espalier::samplers
