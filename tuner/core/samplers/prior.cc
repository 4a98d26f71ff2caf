#include "tuner/core/samplers/prior.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "search_spaces/gaussian.h"
#include "tuner/core/samplers/axis.h"
#include "tuner/core/samplers/configurations.h"

namespace espalier::samplers {
namespace {

constexpr double kTrialsOfConfidence = 20;

// Around the value: on a line, by a normal distribution that is cut off at the bounds (of a
// deviation of a quarter of the range with the default confidence, as in PriorBand); of options
// without order, the option itself or any.
ParameterValue DrawAround(const Distribution& distribution, const Belief& belief, Random& random) {
  const Axis axis(distribution);
  if (axis.unordered()) {
    const bool itself = random.Uniform() < belief.confidence;
    const std::uint64_t any = random.Below(axis.count());
    return itself ? belief.value : ValueAt(distribution, any);
  }
  constexpr double kLeast = 1e-15;  // of a probability of which there is a quantile
  const double middle = axis.Place(belief.value).at;
  const double deviation = (1 - belief.confidence) / 2;
  const double below = NormalCdf((0 - middle) / deviation);
  const double above = NormalCdf((1 - middle) / deviation);
  const double probability = below + (above - below) * random.Uniform();
  const double z = NormalQuantile(std::clamp(probability, kLeast, 1 - kLeast));
  return axis.ValueOf(axis.PlaceAt(std::clamp(middle + deviation * z, 0.0, 1.0)));
}

class PriorSampler final : public Sampler {
 public:
  PriorSampler(std::shared_ptr<const Sampler> sampler, std::vector<Belief> beliefs)
      : sampler_(std::move(sampler)), beliefs_(std::move(beliefs)) {}

  std::optional<Parameters> Suggest(const SamplerInput& input, Random& random) const override {
    std::optional<Parameters> suggested = sampler_->Suggest(input, random);
    if (!suggested) return suggested;
    Parameters changed = Changed(input, *suggested);
    if (SameParameters(changed, *suggested)) return suggested;
    if (WasTried(input, changed)) return suggested;
    return changed;
  }

  double Work(const SamplerInput& input) const override { return sampler_->Work(input); }
  std::string_view Chooses(const SamplerInput& input) const override {
    return sampler_->Chooses(input);
  }
  bool learns() const override { return true; }  // it goes by how many trials there are
  bool takes_objectives() const override { return sampler_->takes_objectives(); }
  bool takes_constraints() const override { return sampler_->takes_constraints(); }
  bool takes_prior() const override { return true; }
  absl::Status Fits(const SearchSpace& space) const override { return sampler_->Fits(space); }
  bool avoids_tried(const SearchSpace& space) const override {
    return sampler_->avoids_tried(space);
  }
  bool draws() const override { return sampler_->draws(); }

 private:
  const Belief* BeliefOf(const SearchSpace::Dimension& dimension) const {
    for (const Belief& belief : beliefs_) {
      if (belief.name != dimension.name) continue;
      return Contains(dimension.distribution, belief.value) ? &belief : nullptr;
    }
    return nullptr;
  }

  // Draws of its own, so that the sampler's stay what they are without a prior. One draw decides
  // for all parameters, so that beliefs that belong together are tried together.
  Parameters Changed(const SamplerInput& input, const Parameters& suggested) const {
    Random random(MixSeed(MixSeed(input.study_seed, "prior"),
                          static_cast<std::uint64_t>(input.trial_number)));
    const std::size_t others = input.ended.size() + input.running.size();
    const double drawn = random.Uniform();
    Parameters changed;
    const auto& dimensions = input.space.dimensions();
    for (std::size_t i = 0; i < dimensions.size(); ++i) {
      if (!input.space.IsActive(i, changed)) continue;
      const auto& [name, distribution, _] = dimensions[i];
      const Belief* belief = BeliefOf(dimensions[i]);
      const ParameterValue* own = Find(suggested, name);
      if (belief != nullptr && others == 0) {
        changed.push_back({name, belief->value});
      } else if (belief != nullptr && drawn < ChanceOfPrior(belief->confidence, others)) {
        changed.push_back({name, DrawAround(distribution, *belief, random)});
      } else {
        // A choice may bring in parameters that the sampler, choosing otherwise, did not draw.
        changed.push_back({name, own ? *own : Draw(distribution, random)});
      }
    }
    return changed;
  }

  static bool SameParameters(const Parameters& a, const Parameters& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const Parameter& one, const Parameter& other) {
                        return one.name == other.name && SameValue(one.value, other.value);
                      });
  }

  const std::shared_ptr<const Sampler> sampler_;
  const std::vector<Belief> beliefs_;
};

}  // namespace

double ChanceOfPrior(double confidence, std::size_t others) {
  const double weight = kTrialsOfConfidence * confidence;
  const double share = weight / (weight + static_cast<double>(others));
  return share * share;
}

std::shared_ptr<const Sampler> WithPrior(std::shared_ptr<const Sampler> sampler,
                                         std::vector<Belief> beliefs) {
  if (beliefs.empty()) return sampler;
  return std::make_shared<const PriorSampler>(std::move(sampler), std::move(beliefs));
}

}  // namespace espalier::samplers
