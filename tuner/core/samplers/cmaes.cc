#include <algorithm>
#include <cmath>
#include <utility>

#include "tuner/core/samplers/cma_model.h"
#include "tuner/core/samplers/configurations.h"
#include "tuner/core/samplers/memo.h"

namespace espalier::samplers {
namespace {

// CMA-ES over the numbers of a space that are always there, scaled to [0, 1] (logarithmic ones by
// their logarithm). All others, choices and what they bring, are drawn from the space by
// themselves. Its draws follow from the trials that have ended, in the order in which they did,
// whoever chose them: nothing of a draw is kept but its trial. Trials that are asked for together
// are draws of one generation; those that end later count for the generation in which they end.
class CmaEsSampler final : public Sampler {
 public:
  explicit CmaEsSampler(CmaSettings settings) : settings_(settings) {}

  bool learns() const override { return true; }
  bool takes_prior() const override { return true; }
  bool takes_like() const override { return true; }

  absl::Status Fits(const SearchSpace& space) const override {
    if (space.dimensions().empty() || CmaSpace(space, settings_.margin).dimensions() > 0) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        "sampler \"cmaes\" needs a parameter that is a number, may be more than one value and "
        "depends on no choice, and the space has none: give \"tpe\", which takes any space");
  }

  double Work(const SamplerInput& input) const override {
    const auto n = static_cast<double>(input.space.dimensions().size());
    const auto results = static_cast<double>(input.ended.size());
    const std::shared_ptr<const CmaModel> known = model_.Last();
    const bool usable = known && SeemsOf(input, *known);
    const double taken = usable ? static_cast<double>(known->taken) : 0;
    const auto population = static_cast<double>(
        usable ? known->cma.population() : CmaPopulation(input.space.dimensions().size() + 1));
    // A decomposition for each generation that is new to the model, a look at each number of each
    // trial, and draws until one is within the space, mostly after few.
    const double generations = std::max(0.0, std::floor((results - taken) / population));
    const double of_generation = 250 + 0.08 * n * n * n;
    const double of_draw = 2 * n + 0.02 * n * n;
    return generations * of_generation + results * n * 0.4 + (10 + n / 4) * of_draw;
  }

  std::optional<Parameters> Suggest(const SamplerInput& input, Random& random) const override {
    const TriedConfigurations tried(input);
    if (tried.Exhausted()) return std::nullopt;
    const CmaSpace space(input.space, settings_.margin);
    const bool started = Started(input) || TellsBefore(input, space);
    if (space.dimensions() == 0 || !started) return tried.DrawNew(random);
    const std::shared_ptr<const CmaModel> model = ModelOf(input, space, settings_, model_.Last());
    if (!input.stop.stop_requested()) model_.Keep(model);
    constexpr int kTries = 8;
    for (int i = 0; i < kTries; ++i) {
      Parameters parameters = Drawn(space, *model, random);
      if (!tried.Contains(parameters)) return parameters;
    }
    return tried.DrawNew(random);
  }

 private:
  bool Started(const SamplerInput& input) const {
    std::size_t complete = 0;
    for (const Observation& trial : input.ended) {
      if (complete >= settings_.startup_trials) break;
      if (!trial.pruned && std::isfinite(trial.value)) ++complete;
    }
    return complete >= settings_.startup_trials;
  }

  Parameters Drawn(const CmaSpace& space, const CmaModel& model, Random& random) const {
    const Eigen::VectorXd point = PointWithin(space, model, random);
    const auto& dimensions = space.space().dimensions();
    Parameters parameters;
    std::size_t next = 0;
    for (std::size_t i = 0; i < dimensions.size(); ++i) {
      if (next < space.dimensions() && space.place_in_space(next) == i) {
        parameters.push_back({dimensions[i].name, ValueOf(space, model, next, point)});
        ++next;
      } else if (space.space().IsActive(i, parameters)) {
        parameters.push_back({dimensions[i].name, Draw(dimensions[i].distribution, random)});
      }
    }
    return parameters;
  }

  static ParameterValue ValueOf(const CmaSpace& space, const CmaModel& model, std::size_t i,
                                const Eigen::VectorXd& point) {
    const double at = point[static_cast<Eigen::Index>(i)];
    for (std::size_t s = 0; s < space.stepped().size(); ++s) {
      if (space.stepped()[s].dimension == i) {
        return space.axis(i).ValueOf(model.margin->IndexOf(model.cma, s, at));
      }
    }
    return space.axis(i).ValueAt(at);
  }

  // A draw whose coordinates are within 0 and 1, but for those that are rounded to values; after
  // many that are not, one that is cut off there.
  static Eigen::VectorXd PointWithin(const CmaSpace& space, const CmaModel& model, Random& random) {
    const std::size_t attempts = 10 * space.dimensions();
    const auto within = [&](const Eigen::VectorXd& point) {
      for (std::size_t i = 0; i < space.dimensions(); ++i) {
        const double at = point[static_cast<Eigen::Index>(i)];
        if (!(at >= 0 && at <= 1) && !IsStepped(space, i)) return false;
      }
      return true;
    };
    for (std::size_t i = 0; i < attempts; ++i) {
      Eigen::VectorXd point = model.cma.Draw(random);
      if (within(point)) return point;
    }
    Eigen::VectorXd point = model.cma.Draw(random);
    for (std::size_t i = 0; i < space.dimensions(); ++i) {
      double& at = point[static_cast<Eigen::Index>(i)];
      if (!IsStepped(space, i)) at = std::clamp(at, 0.0, 1.0);
    }
    return point;
  }

  static bool IsStepped(const CmaSpace& space, std::size_t i) {
    return std::any_of(space.stepped().begin(), space.stepped().end(),
                       [i](const SteppedDimension& of) { return of.dimension == i; });
  }

  CmaSettings settings_;
  Memo<CmaModel> model_;
};

absl::StatusOr<std::unique_ptr<Sampler>> MakeCmaEs(const OptionValues& options) {
  const bool separable = options.Flag("separable");
  const bool margin = options.Flag("with_margin");
  if (options.Flag("lr_adapt") && (separable || margin)) {
    return OptionNeeds("lr_adapt", "false where separable or with_margin is true", true);
  }
  if (separable && margin) {
    return OptionNeeds("separable", "false where with_margin is true", true);
  }
  if (options.Whole("popsize") == 1) return OptionNeeds("popsize", "0 or at least 2", 1);
  CmaSettings settings{.startup_trials = static_cast<std::size_t>(options.Whole("startup_trials")),
                       .population = static_cast<std::size_t>(options.Whole("popsize")),
                       .sigma = options["sigma0"],
                       .margin = margin,
                       .restart = options.Chosen<CmaRestart>("restart"),
                       .restart_factor = options["inc_popsize"]};
  if (separable) settings.variant = CmaVariant::kSeparable;
  if (options.Flag("lr_adapt")) settings.variant = CmaVariant::kAdaptedRates;
  return std::make_unique<CmaEsSampler>(settings);
}

}  // namespace

PluginRow<Sampler> CmaEsRow() {
  return {{.name = "cmaes",
           .summary = "CMA-ES: a normal distribution that moves towards the better trials",
           .options = {{.name = "startup_trials",
                        .default_value = 1,
                        .most = 10000,
                        .whole = true,
                        .meaning = "trials with a value before the first draw; random until then"},
                       {.name = "popsize",
                        .most = 100000,
                        .whole = true,
                        .meaning = "trials of a generation; 0: 4 + 3 ln(parameters)"},
                       {.name = "sigma0",
                        .most = 10,
                        .meaning = "first step size, in ranges of parameters; 0: a sixth"},
                       {.name = "separable",
                        .meaning = "learns each parameter's step size, and no correlations",
                        .flag = true},
                       {.name = "with_margin",
                        .meaning = "keeps whole numbers and steps from being stuck at one value",
                        .flag = true},
                       {.name = "lr_adapt",
                        .meaning = "adapts how fast it learns to how noisy the values are",
                        .flag = true},
                       {.name = "restart",
                        .meaning = "starts anew when it has converged, with other populations",
                        .words = {"none", "ipop", "bipop"}},
                       {.name = "inc_popsize",
                        .default_value = 2,
                        .least = 1,
                        .most = 100,
                        .meaning = "how much larger the population of such a start is"}}},
          MakeCmaEs};
}

}  // namespace espalier::samplers
