// Bayesian optimisation by Gaussian processes.

#include <algorithm>
#include <memory>

#include "tuner/core/samplers/configurations.h"
#include "tuner/core/samplers/gp/before_trials.h"
#include "tuner/core/samplers/gp/model.h"
#include "tuner/core/samplers/gp/search.h"
#include "tuner/core/samplers/gp/trials.h"
#include "tuner/core/samplers/sampler.h"

namespace espalier::samplers {
namespace {

struct GpSettings {
  std::size_t startup_trials;
  bool deterministic;
  gp::SearchSettings search;
};

class GpSampler final : public Sampler {
 public:
  explicit GpSampler(GpSettings settings) : settings_(settings) {}

  bool learns() const override { return true; }
  bool takes_objectives() const override { return true; }
  bool takes_constraints() const override { return true; }
  bool takes_prior() const override { return true; }
  bool takes_like() const override { return true; }

  double Work(const SamplerInput& input) const override;
  std::optional<Parameters> Suggest(const SamplerInput& input, Random& random) const override;

 private:
  // nullopt: too little is known for one.
  std::optional<gp::Model> ModelOf(const SamplerInput& input, const gp::GpSpace& space,
                                   Random& random) const;

  GpSettings settings_;
};

double GpSampler::Work(const SamplerInput& input) const {
  if (input.before.empty() && input.ended.size() < settings_.startup_trials) return 0;
  constexpr double kOperations = 200;  // of matrices, in the time of one kernel on one axis
  constexpr double kSteps = 30;        // of a fit, of a local search
  const auto axes = static_cast<double>(input.space.dimensions().size());
  const auto n = static_cast<double>(std::min<std::size_t>(
      input.ended.size() + input.before.size(), static_cast<std::size_t>(gp::kMostTrials)));
  const double leading = std::min<double>(n, gp::kLeadingTrials);
  const auto preliminary = static_cast<double>(settings_.search.preliminary);
  const auto starts = static_cast<double>(settings_.search.starts);
  const double fits = settings_.deterministic ? 1 : 2;  // with noise and without
  const double operations = fits * kSteps * leading * leading * (leading + 5 * axes) +
                            n * n * n / 3 + preliminary * leading * leading +
                            kSteps * starts * n * (2 * n + 20 * axes);
  const double constraints =
      input.ended.empty() ? 0 : static_cast<double>(input.ended.back().constraints.size());
  const double draws = input.running.empty() ? 1 : 20;  // what they cost in kernels
  return (static_cast<double>(input.objectives()) + constraints) *
         (operations / kOperations + preliminary * (10 * axes + n * (axes + draws) / 20));
}

std::optional<gp::Model> GpSampler::ModelOf(const SamplerInput& input, const gp::GpSpace& space,
                                            Random& random) const {
  const gp::ModelSettings settings{.deterministic = settings_.deterministic,
                                   .most_known = settings_.search.starts / 2};
  if (const auto trials =
          gp::TrialsOf(input, space, settings_.startup_trials, settings_.deterministic)) {
    return gp::ModelOf(*trials, space, settings, random, input.stop);
  }
  // Another study's trials in place of chance.
  const std::optional<gp::BeforeTrials> before = gp::BeforeTrialsOf(input, space);
  if (!before) return std::nullopt;
  if (const auto trials = gp::TrialsOf(input, space, 1, settings_.deterministic)) {
    return gp::ModelOf(*trials, space, settings, random, input.stop, &*before);
  }
  return gp::ModelInPlace(*before, gp::FailedOf(input, space), gp::RunningOf(input, space), space,
                          settings, random, input.stop);
}

std::optional<Parameters> GpSampler::Suggest(const SamplerInput& input, Random& random) const {
  const TriedConfigurations tried(input);
  if (tried.Exhausted()) return std::nullopt;
  const gp::GpSpace space(input.space);
  if (space.axes() == 0) return tried.DrawNew(random);
  const std::optional<gp::Model> model = ModelOf(input, space, random);
  if (!model) return tried.DrawNew(random);

  for (const gp::Candidate& candidate : gp::SearchMaximum(space, model->acquisition, model->known,
                                                          settings_.search, random, input.stop)) {
    Parameters parameters = space.ParametersAt(candidate.point);
    if (!tried.Contains(parameters)) return parameters;
  }
  return tried.DrawNew(random);
}

}  // namespace

PluginRow<Sampler> GpRow() {
  return {
      {.name = "gp",
       .summary = "Gaussian process: tries where improvement is likeliest and largest",
       .options = {{.name = "deterministic_objective",
                    .meaning = "the same parameters give the same value, without noise",
                    .flag = true},
                   {.name = "local_searches",
                    .default_value = 10,
                    .least = 2,
                    .most = 1000,
                    .whole = true,
                    .meaning = "searches for the maximum of the acquisition function"},
                   {.name = "preliminary_samples",
                    .default_value = 2048,
                    .least = 1,
                    .most = 100000,
                    .whole = true,
                    .meaning = "points of which the searches begin at the most promising"},
                   {.name = "startup_trials",
                    .default_value = 10,
                    .most = 10000,
                    .whole = true,
                    .meaning = "trials with a value before the first model; random until then"}}},
      [](const OptionValues& options) {
        return std::make_unique<GpSampler>(GpSettings{
            .startup_trials = static_cast<std::size_t>(options.Whole("startup_trials")),
            .deterministic = options.Flag("deterministic_objective"),
            .search = {
                .preliminary = static_cast<std::size_t>(options.Whole("preliminary_samples")),
                .starts = static_cast<std::size_t>(options.Whole("local_searches"))}});
      }};
}

}  // namespace espalier::samplers
