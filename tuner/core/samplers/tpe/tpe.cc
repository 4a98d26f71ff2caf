#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "tuner/core/samplers/configurations.h"
#include "tuner/core/samplers/memo.h"
#include "tuner/core/samplers/sampler.h"
#include "tuner/core/samplers/tpe/before_trials.h"
#include "tuner/core/samplers/tpe/densities.h"

namespace espalier::samplers {
namespace {

struct TpeSettings {
  std::size_t startup_trials;
  std::size_t candidates;
  std::optional<bool> joint;  // nullopt: with one objective
  bool group;
  bool constant_liar;
  bool ordered;
  SplitSettings split;
  ParzenSettings parzen;
};

enum class Bandwidth { kScott, kNeighbors };

// To find a configuration that was not tried, where their number is finite.
constexpr int kAttempts = 8;

// Dimensions of the space that are modelled together.
using Group = std::vector<std::size_t>;

std::vector<Group> EachAlone(const SearchSpace& space) {
  std::vector<Group> groups;
  for (std::size_t i = 0; i < space.dimensions().size(); ++i) groups.push_back({i});
  return groups;
}

// Those without a condition together. `group`: those with the same condition too; otherwise each by
// itself. In the space's order, so that what a group depends on comes before it.
std::vector<Group> Together(const SearchSpace& space, bool group) {
  std::vector<Group> groups;
  std::vector<std::optional<SearchSpace::Condition>> conditions;
  for (std::size_t i = 0; i < space.dimensions().size(); ++i) {
    const auto& condition = space.dimensions()[i].condition;
    auto known = conditions.end();
    if (group || !condition) known = std::find(conditions.begin(), conditions.end(), condition);
    const auto at = static_cast<std::size_t>(known - conditions.begin());
    if (known == conditions.end()) {
      conditions.push_back(condition);
      groups.emplace_back();
    }
    groups[at].push_back(i);
  }
  return groups;
}

// Tree-structured Parzen estimator (Bergstra et al. 2011) as Optuna 5.0 has it: of all parameters
// that are always there together, of those with a condition each by itself or by conditions
// (`group`), or of each parameter by itself. For several objectives and under constraints, too
// (split.h).
class TpeSampler final : public Sampler {
 public:
  explicit TpeSampler(const TpeSettings& settings) : settings_(settings) {}

  bool learns() const override { return true; }
  bool takes_objectives() const override { return true; }
  bool takes_constraints() const override { return true; }
  bool takes_prior() const override { return true; }
  bool takes_like() const override { return true; }

  double Work(const SamplerInput& input) const override;
  std::optional<Parameters> Suggest(const SamplerInput& input, Random& random) const override;

 private:
  bool IsJoint(const SamplerInput& input) const {
    return settings_.joint.value_or(settings_.group || input.objectives() == 1);
  }
  std::vector<Group> GroupsOf(const SamplerInput& input) const {
    return IsJoint(input) ? Together(input.space, settings_.group) : EachAlone(input.space);
  }

  const TpeSettings settings_;
  LentMemo<PlacedTrials> placed_;
};

// One suggestion: densities are made of groups that become active.
class Suggestion {
 public:
  Suggestion(const SamplerInput& input, std::vector<Group> groups, const TpeTrials& trials,
             const TpeSettings& settings, const ParzenSettings& parzen)
      : input_(input),
        groups_(std::move(groups)),
        trials_(trials),
        settings_(settings),
        parzen_(parzen),
        densities_(groups_.size()) {}

  // Group by group, those that the choices made so far activate; in the space's order.
  Parameters Draw(Random& random) {
    const auto& dimensions = input_.space.dimensions();
    Parameters chosen;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      const Group& group = groups_[g];
      if (!input_.space.IsActive(group.front(), chosen)) continue;
      if (!densities_[g]) densities_[g] = DensitiesOf(trials_, group, parzen_);
      const Point point = densities_[g]->Best(settings_.candidates, input_.stop, random);
      for (std::size_t i = 0; i < group.size(); ++i) {
        const Axis& axis = trials_.ended.axes()[group[i]];
        chosen.push_back({dimensions[group[i]].name, axis.ValueOf(point[i])});
      }
    }
    if (groups_.size() == 1) return chosen;
    Parameters ordered;
    for (const auto& dimension : dimensions) {
      const ParameterValue* value = Find(chosen, dimension.name);
      if (value != nullptr) ordered.push_back({dimension.name, *value});
    }
    return ordered;
  }

 private:
  const SamplerInput& input_;
  const std::vector<Group> groups_;
  const TpeTrials& trials_;
  const TpeSettings& settings_;
  const ParzenSettings parzen_;
  std::vector<std::optional<TpeDensities>> densities_;
};

std::optional<Parameters> TpeSampler::Suggest(const SamplerInput& input, Random& random) const {
  const TriedConfigurations tried(input);
  if (tried.Exhausted()) return std::nullopt;
  const TrialsWithBefore learnt(input, settings_.split);
  const TpeSplit& split = learnt.split();
  // A program may have no parameters.
  if (split.results + input.before.size() < std::max<std::size_t>(settings_.startup_trials, 1) ||
      input.space.dimensions().empty()) {
    return tried.DrawNew(random);
  }
  std::unique_ptr<PlacedTrials> placed = placed_.Take();
  if (!placed || !placed->IsOf(input.space)) {
    placed = std::make_unique<PlacedTrials>(input.space, settings_.ordered);
  }
  placed->Follow(learnt.ended());
  TpeTrials trials{
      .ended = *placed, .split = split, .running = {}, .good_are_even = input.objectives() > 1};
  if (settings_.constant_liar) {
    for (const Parameters* parameters : input.running) {
      trials.running.push_back(placed->PlacesOf(*parameters));
    }
  }
  ParzenSettings parzen = settings_.parzen;
  parzen.shared = parzen.shared && IsJoint(input);
  Suggestion suggestion(input, GroupsOf(input), trials, settings_, parzen);
  std::optional<Parameters> suggested;
  for (int attempt = 0; attempt < kAttempts && !suggested; ++attempt) {
    Parameters parameters = suggestion.Draw(random);
    if (!tried.Contains(parameters)) suggested = std::move(parameters);
  }
  placed_.Keep(std::move(placed));
  return suggested ? suggested : tried.DrawNew(random);
}

// What it takes to tell how far a kernel is along one axis, for one candidate: a distance that is
// one of several abreast, or of many steps a probability.
double WorkOfDistance(const Distribution& distribution) {
  constexpr std::uint64_t kMany = 256;
  return Cardinality(distribution).value_or(0) > kMany ? 0.35 : 0.05;
}

double TpeSampler::Work(const SamplerInput& input) const {
  // A candidate takes a draw for each axis; a kernel a place on each, and an exponential for each
  // candidate. A parameter that is modelled by itself has kernels of its own.
  constexpr double kDraw = 6;
  constexpr double kToPlace = 0.5;
  constexpr double kExponential = 0.1;
  const auto kernels =
      static_cast<double>(input.before.size() + input.ended.size() + input.running.size() + 2);
  const auto axes = static_cast<double>(input.space.dimensions().size());
  double distances = 0;
  for (const auto& dimension : input.space.dimensions()) {
    distances += WorkOfDistance(dimension.distribution);
  }
  const double exponentials = IsJoint(input) ? kExponential : axes * kExponential;
  const double candidates =
      static_cast<double>(settings_.candidates) * (input.space.Cardinality() ? kAttempts : 1);
  // Fronts, and the choice among the trials of one.
  constexpr double kPairOfTwo = 0.003;
  constexpr double kPairOfMore = 0.01;
  const double pair = input.objectives() == 1   ? 0
                      : input.objectives() == 2 ? kPairOfTwo
                                                : kPairOfMore;
  return kernels * axes * kToPlace +
         candidates * (axes * kDraw + kernels * (exponentials + distances)) +
         kernels * kernels * pair;
}

PluginOption Flag(std::string_view name, bool by_default, std::string_view meaning) {
  return {.name = name, .default_value = by_default ? 1.0 : 0.0, .meaning = meaning, .flag = true};
}

std::vector<PluginOption> TpeOptions() {
  return std::vector<PluginOption>{
      {.name = "candidates",
       .default_value = 24,
       .least = 1,
       .most = 10000,
       .whole = true,
       .meaning = "draws from the density of good trials; the best one is taken"},
      {.name = "gamma",
       .default_value = 0.1,
       .least = 0.001,
       .most = 1,
       .meaning = "share of the trials that count as good"},
      {.name = "most_good",
       .default_value = 25,
       .least = 1,
       .most = 10000,
       .whole = true,
       .meaning = "most trials that count as good, with one objective"},
      {.name = "multivariate",
       .meaning = "models parameters together; if not given, with one objective",
       .flag = true,
       .optional = true},
      Flag("group", false, "models the parameters of an option together, too"),
      {.name = "startup_trials",
       .default_value = 10,
       .most = 10000,
       .whole = true,
       .meaning = "trials with a result before the first estimate; random until then"},
      Flag("constant_liar", true, "running trials count as bad; else not at all"),
      Flag("failed", true, "failed trials count as bad; else not at all"),
      Flag("ordered", true, "choices of numbers in order are ordered; else names"),
      {.name = "bandwidth",
       .meaning = "of parameters together: scott, from their spread; neighbors, as Optuna's",
       .words = {"scott", "neighbors"}},
      {.name = "prior_weight",
       .default_value = 1,
       .most = 1000,
       .meaning = "weight of the whole space beside trials, which weigh up to 1"},
      Flag("magic_clip", true, "no kernel is much narrower than the space"),
      Flag("endpoints", false, "the outermost kernels reach to the bounds")};
}

absl::StatusOr<std::unique_ptr<Sampler>> MakeTpe(const OptionValues& options) {
  std::optional<bool> joint;
  if (const auto given = options.Given("multivariate")) joint = *given > 0;
  const bool group = options.Flag("group");
  if (group && joint == false) return OptionNeeds("multivariate", "true with group", false);
  return std::make_unique<TpeSampler>(TpeSettings{
      .startup_trials = static_cast<std::size_t>(options.Whole("startup_trials")),
      .candidates = static_cast<std::size_t>(options.Whole("candidates")),
      .joint = joint,
      .group = group,
      .constant_liar = options.Flag("constant_liar"),
      .ordered = options.Flag("ordered"),
      .split = {.gamma = options["gamma"],
                .most_good = static_cast<std::size_t>(options.Whole("most_good")),
                .failed = options.Flag("failed")},
      .parzen = {.prior_weight = options["prior_weight"],
                 .magic_clip = options.Flag("magic_clip"),
                 .endpoints = options.Flag("endpoints"),
                 .shared = options.Chosen<Bandwidth>("bandwidth") == Bandwidth::kScott}});
}

}  // namespace

PluginRow<Sampler> TpeRow() {
  return {{.name = "tpe",
           .summary = "tree-structured Parzen estimator: draws where good trials are dense",
           .options = TpeOptions()},
          MakeTpe};
}

}  // namespace espalier::samplers
