// Leaves each suggestion to the sampler that has done best in spaces and after numbers of trials
// like these (docs/samplers.md has the figures).

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <variant>

#include "base/check.h"
#include "tuner/core/samplers/sampler.h"

namespace espalier::samplers {
namespace {

// Before so many trials the Gaussian process finds the best values; what goes on then learns from
// its trials.
constexpr std::size_t kTrialsOfGp = 500;
constexpr std::size_t kTrialsOfGpBeforeNsga2 = 200;
// Before CMA-ES it is the longer the more parameters there are: the distribution of CMA-ES has
// more to learn, and the Gaussian process gets stuck later.
std::size_t TrialsOfGpBeforeCmaEs(std::size_t parameters) {
  return std::clamp<std::size_t>(20 * parameters, 100, 300);
}
// Of one suggestion (Sampler::Work): half a second at the most. Hundreds of trials with many
// parameters, several objectives and constraints reach it sooner.
constexpr double kMostWorkOfGp = 2e7;

// Numbers alone, so that each trial has all of them.
bool AreAllNumbers(const SearchSpace& space) {
  const auto& dimensions = space.dimensions();
  return std::none_of(dimensions.begin(), dimensions.end(), [](const auto& dimension) {
    return std::holds_alternative<Choice>(dimension.distribution);
  });
}

bool TellsOfConstraints(const SamplerInput& input) {
  if (input.tells_of_constraints) return *input.tells_of_constraints;
  return std::any_of(input.ended.begin(), input.ended.end(),
                     [](const Observation& trial) { return !trial.constraints.empty(); });
}

// How many trials there are. With several objectives `gp` has no values of those that were pruned.
std::size_t TrialsFor(const SamplerInput& input) {
  const std::size_t trials = input.ended.size() + input.running.size();
  if (input.objectives() == 1) return trials;
  return trials - static_cast<std::size_t>(
                      std::count_if(input.ended.begin(), input.ended.end(),
                                    [](const Observation& trial) { return trial.pruned; }));
}

// All but the Gaussian process by their default options. Suggestions follow from the input, and so
// does which of them makes one: a trial draws the same whatever was drawn before it.
class AutoSampler final : public Sampler {
 public:
  explicit AutoSampler(bool deterministic)
      : gp_("gp", {{"deterministic_objective", deterministic}}) {}

  bool learns() const override { return true; }
  bool takes_objectives() const override { return true; }
  bool takes_constraints() const override { return true; }
  // nsga2, which begins at random and so has no use for one, goes on only once a prior has faded;
  // trials that were drawn from it are among its parents.
  bool takes_prior() const override { return true; }
  bool takes_like() const override { return true; }

  std::optional<Parameters> Suggest(const SamplerInput& input, Random& random) const override {
    return ChosenFor(input).sampler->Suggest(input, random);
  }
  double Work(const SamplerInput& input) const override {
    return ChosenFor(input).sampler->Work(input);
  }
  std::string_view Chooses(const SamplerInput& input) const override {
    return ChosenFor(input).name;
  }

 private:
  struct Named {
    explicit Named(std::string_view of, const Options& options = {}) : name(of) {
      auto made = MakeSampler(name, options);
      ESPALIER_CHECK(made.ok(), "a row of the table makes a sampler by options that it has");
      sampler = *std::move(made);
    }

    std::string_view name;
    std::unique_ptr<const Sampler> sampler;
  };

  const Named& ChosenFor(const SamplerInput& input) const {
    const auto [trials_of_gp, after] = PlanFor(input);
    if (TrialsFor(input) >= trials_of_gp) return *after;
    return gp_.sampler->Work(input) <= kMostWorkOfGp ? gp_ : tpe_;
  }

  // Before how many trials the Gaussian process is asked, and which sampler goes on.
  std::pair<std::size_t, const Named*> PlanFor(const SamplerInput& input) const {
    if (input.objectives() > 1) {
      // nsga2 learns nothing from another study's trials.
      return {kTrialsOfGpBeforeNsga2, input.before.empty() ? &nsga2_ : &tpe_};
    }
    const bool numbers = AreAllNumbers(input.space) && cmaes_.sampler->Fits(input.space).ok();
    if (numbers && !TellsOfConstraints(input)) {
      return {TrialsOfGpBeforeCmaEs(input.space.dimensions().size()), &cmaes_};
    }
    return {kTrialsOfGp, &tpe_};
  }

  const Named gp_;
  const Named tpe_{"tpe"};
  const Named cmaes_{"cmaes"};
  const Named nsga2_{"nsga2"};
};

}  // namespace

PluginRow<Sampler> AutoRow() {
  return {{.name = "auto",
           .summary = "gp first, and after some hundred trials cmaes, nsga2 or tpe, by the study",
           .options = {{.name = "deterministic_objective",
                        .meaning = "of gp: the same parameters give the same value, without noise",
                        .flag = true}}},
          [](const OptionValues& options) {
            return std::make_unique<AutoSampler>(options.Flag("deterministic_objective"));
          }};
}

}  // namespace espalier::samplers
