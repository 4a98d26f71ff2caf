#include "tuner/core/samplers/children.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "search_spaces/unit_interval.h"
#include "tuner/core/samplers/before.h"
#include "tuner/core/samplers/configurations.h"

namespace espalier::samplers {
namespace {

// For a child within the space, and for one that was not tried.
constexpr int kMostMatings = 64;
constexpr int kMostChildren = 8;

bool IsChoice(const Distribution& distribution) {
  return std::holds_alternative<Choice>(distribution);
}

// Each parent is drawn from those that are none yet.
std::vector<const Parameters*> DrawParents(const SamplerInput& input, const Population& population,
                                           std::size_t count, Random& random) {
  const std::vector<Direction> directions = DirectionsOf(input);
  Population left = population;
  std::vector<const Parameters*> parents;
  while (parents.size() < count) {
    const std::size_t first = random.Below(left.size());
    const std::size_t second = random.Below(left.size());
    const std::size_t chosen = Preferred(left[first], left[second], directions) ? first : second;
    parents.push_back(left[chosen].trial->parameters);
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(chosen));
  }
  return parents;
}

// A child by its dimensions: those that are active have a value.
class Mating {
 public:
  Mating(const SearchSpace& space, const std::vector<const Parameters*>& parents, Random& random)
      : space_(space), parents_(parents), random_(random), values_(space.dimensions().size()) {}

  // False: the child is outside the space, unless it is brought back with `clip`.
  bool Succeeds(const CrossoverInput& crossover, bool clip) {
    CrossChoices(crossover.swapping_probability);
    const std::vector<std::size_t> crossed = TakeUncrossed();
    if (crossed.empty()) return true;
    std::vector<std::vector<double>> places;
    for (const Parameters* parent : parents_) {
      std::vector<double>& numbers = places.emplace_back();
      for (const std::size_t i : crossed) {
        numbers.push_back(ToUnit(DistributionAt(i), *ValueOf(space_, i, *parent)).Middle());
      }
    }
    const std::vector<double> child = Cross(crossover, places, random_);
    for (std::size_t k = 0; k < crossed.size(); ++k) {
      const Distribution& distribution = DistributionAt(crossed[k]);
      const bool within = child[k] >= 0 && child[k] <= 1;
      // The last value of a discrete axis is as near as any beyond it.
      if (!within && !clip && !Cardinality(distribution)) return false;
      values_[crossed[k]] = ValueAtPlace(crossed[k], child[k], k, places);
    }
    return true;
  }

  Parameters Child() const {
    Parameters child;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (values_[i]) child.push_back({space_.dimensions()[i].name, *values_[i]});
    }
    return child;
  }

 private:
  const Distribution& DistributionAt(std::size_t i) const {
    return space_.dimensions()[i].distribution;
  }

  // A number that is a parent's stays what it is to the last bit.
  ParameterValue ValueAtPlace(std::size_t i, double place, std::size_t k,
                              const std::vector<std::vector<double>>& places) const {
    for (std::size_t p = 0; p < places.size(); ++p) {
      if (places[p][k] == place) return *ValueOf(space_, i, *parents_[p]);
    }
    return FromUnit(DistributionAt(i), std::clamp(place, 0.0, 1.0));
  }

  void CrossChoices(double swapping_probability) {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (!IsChoice(DistributionAt(i)) || !space_.IsActive(i, choices_)) continue;
      const ParameterValue* first = ValueOf(space_, i, *parents_.front());
      const ParameterValue* last = ValueOf(space_, i, *parents_.back());
      const bool from_last = random_.Uniform() >= swapping_probability;
      const ParameterValue* value =
          last != nullptr && (from_last || first == nullptr) ? last : first;
      values_[i] = value != nullptr ? *value : Draw(DistributionAt(i), random_);
      choices_.push_back({space_.dimensions()[i].name, *values_[i]});
    }
  }

  // The dimensions of numbers that all parents have; of the others values are taken.
  std::vector<std::size_t> TakeUncrossed() {
    std::vector<std::size_t> crossed;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (IsChoice(DistributionAt(i)) || !space_.IsActive(i, choices_)) continue;
      const auto has = [&](const Parameters* p) { return ValueOf(space_, i, *p) != nullptr; };
      if (std::all_of(parents_.begin(), parents_.end(), has)) {
        crossed.push_back(i);
        continue;
      }
      const auto parent = std::find_if(parents_.begin(), parents_.end(), has);
      values_[i] = parent != parents_.end() ? *ValueOf(space_, i, **parent)
                                            : Draw(DistributionAt(i), random_);
    }
    return crossed;
  }

  const SearchSpace& space_;
  const std::vector<const Parameters*>& parents_;
  Random& random_;
  Parameters choices_;
  std::vector<std::optional<ParameterValue>> values_;
};

Parameters Crossed(const SamplerInput& input, const Population& population,
                   const Breeding& breeding, Random& random) {
  const CrossoverInput crossover{.crossover = breeding.crossover,
                                 .swapping_probability = breeding.swapping_probability,
                                 .several_objectives = input.objectives() > 1,
                                 .spread = breeding.spread};
  for (int mating = 1;; ++mating) {
    const auto parents = DrawParents(input, population, ParentCount(breeding.crossover), random);
    Mating attempt(input.space, parents, random);
    const bool last = mating == kMostMatings || input.stop.stop_requested();
    if (attempt.Succeeds(crossover, last)) return attempt.Child();
  }
}

Parameters Mutated(const SearchSpace& space, const Parameters& child, const Breeding& breeding,
                   Random& random) {
  double probability = breeding.mutation_probability;
  if (probability == 0) {
    double count = 0;
    for (std::size_t i = 0; i < space.dimensions().size(); ++i) {
      count += ValueOf(space, i, child) != nullptr ? 1 : 0;
    }
    probability = 1 / std::max(2.0, count);
  }
  Parameters mutated;
  for (std::size_t i = 0; i < space.dimensions().size(); ++i) {
    if (!space.IsActive(i, mutated)) continue;
    const auto& [name, distribution, condition] = space.dimensions()[i];
    const ParameterValue* value = ValueOf(space, i, child);
    if (value != nullptr && random.Uniform() >= probability) {
      mutated.push_back({name, *value});
    } else if (value != nullptr && breeding.mutation == Mutation::kPolynomial &&
               !IsChoice(distribution)) {
      const double moved =
          MutatePolynomially(ToUnit(distribution, *value).Middle(), breeding.mutation_eta, random);
      mutated.push_back({name, FromUnit(distribution, moved)});
    } else {
      mutated.push_back({name, Draw(distribution, random)});
    }
  }
  return mutated;
}

// Whether a trial has or had exactly these.
bool Repeats(const SamplerInput& input, const Parameters& child) {
  const auto is_child = [&child](const Parameters* tried) { return *tried == child; };
  return std::any_of(input.running.begin(), input.running.end(), is_child) ||
         std::any_of(input.ended.begin(), input.ended.end(),
                     [&](const Observation& trial) { return is_child(trial.parameters); });
}

// Of the first generation every other trial is one of another study's, the best first, as far as
// there are any (Friedrich and Wagner 2015, "Seeding the Initial Population of Multi-Objective
// Evolutionary Algorithms"); the others are drawn, so that the population is not all alike.
std::optional<Parameters> SeedOf(const SamplerInput& input) {
  const auto number = static_cast<std::size_t>(input.trial_number);
  if (number % 2 != 0 || number / 2 >= input.before.size()) return std::nullopt;
  return CompletedBefore(input)[number / 2];
}

class GeneticSampler final : public Sampler {
 public:
  GeneticSampler(const Breeding& breeding, Select select, std::function<double(std::size_t)> work,
                 std::size_t objectives)
      : breeding_(breeding),
        select_(std::move(select)),
        work_(std::move(work)),
        objectives_(objectives) {}

  bool learns() const override { return true; }
  bool takes_objectives() const override { return true; }
  bool takes_constraints() const override { return true; }
  bool takes_like() const override { return true; }

  absl::Status FitsObjectives(std::size_t objectives) const override {
    if (objectives_ == 0 || objectives == objectives_) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("option \"reference_points\" has points of ",
                                                   objectives_, " numbers, and there are ",
                                                   objectives, " objectives"));
  }

  double Work(const SamplerInput& input) const override {
    const auto dimensions = static_cast<double>(input.space.dimensions().size());
    // Each trial is looked up in the space, ranked with its generation, and selected from.
    const double of_trial = 0.4 * dimensions + 4 * static_cast<double>(input.objectives()) +
                            2 * work_(input.objectives());
    return static_cast<double>(input.ended.size()) * of_trial;
  }

  std::optional<Parameters> Suggest(const SamplerInput& input, Random& random) const override {
    const TriedConfigurations tried(input);
    if (tried.Exhausted()) return std::nullopt;
    const Population parents = ParentsOf(input, breeding_.population_size, select_);
    if (parents.empty() || input.space.dimensions().empty()) {
      const std::optional<Parameters> seed = SeedOf(input);
      const bool is_new =
          seed && (tried.numbered() ? !tried.Contains(*seed) : !Repeats(input, *seed));
      return is_new ? seed : tried.DrawNew(random);
    }
    Parameters child;
    for (int attempt = 0; attempt < kMostChildren; ++attempt) {
      child = ChildOf(input, parents, breeding_, random);
      if (tried.numbered() ? !tried.Contains(child) : !Repeats(input, child)) return child;
    }
    return tried.numbered() ? tried.DrawNew(random) : child;
  }

 private:
  const Breeding breeding_;
  const Select select_;
  const std::function<double(std::size_t)> work_;
  const std::size_t objectives_;
};

// Which crossovers have an option; the others refuse it.
struct SpreadOption {
  std::string_view name;
  std::vector<Crossover> of;
};

const std::vector<SpreadOption>& SpreadOptions() {
  static const std::vector<SpreadOption> options = {
      {"alpha", {Crossover::kBlxAlpha}},
      {"child_gene_probability", {Crossover::kSbx, Crossover::kVsbx}},
      {"epsilon", {Crossover::kSpx}},
      {"eta", {Crossover::kSbx, Crossover::kVsbx}},
      {"sigma_eta", {Crossover::kUndx}},
      {"sigma_xi", {Crossover::kUndx}},
      {"uniform_crossover_probability", {Crossover::kSbx, Crossover::kVsbx}}};
  return options;
}

constexpr std::string_view kCrossoverNames[] = {"uniform", "blx_alpha", "spx",
                                                "sbx",     "vsbx",      "undx"};

absl::StatusOr<CrossoverSpread> SpreadOf(const OptionValues& options, Crossover crossover) {
  for (const auto& [name, of] : SpreadOptions()) {
    const std::optional<double> given = options.Given(name);
    if (!given || std::find(of.begin(), of.end(), crossover) != of.end()) continue;
    std::string names;
    for (const Crossover one : of) {
      absl::StrAppend(&names, names.empty() ? "" : " or ",
                      std::string(kCrossoverNames[static_cast<std::size_t>(one)]));
    }
    return OptionNeeds(name, absl::StrCat("the crossover ", names, " beside it"), *given);
  }
  const CrossoverSpread by_default;
  const auto number = [&options](std::string_view name, double otherwise) {
    return options.Given(name).value_or(otherwise);
  };
  return CrossoverSpread{
      .alpha = number("alpha", by_default.alpha),
      .epsilon = options.Given("epsilon"),
      .eta = options.Given("eta"),
      .child_gene_probability = number("child_gene_probability", by_default.child_gene_probability),
      .uniform_crossover_probability =
          number("uniform_crossover_probability", by_default.uniform_crossover_probability),
      .sigma_xi = number("sigma_xi", by_default.sigma_xi),
      .sigma_eta = options.Given("sigma_eta")};
}

}  // namespace

std::vector<PluginOption> BreedingOptions() {
  return {{.name = "alpha",
           .most = 100,
           .meaning = "of blx_alpha: how far beyond the parents, in their distance; 0.5",
           .optional = true},
          {.name = "child_gene_probability",
           .least = 0.01,
           .most = 1,
           .meaning = "of sbx, vsbx: that a number is crossed, not a parent's; 0.5",
           .optional = true},
          {.name = "crossover",
           .meaning = "how the numbers of parents are crossed",
           .words = {std::begin(kCrossoverNames), std::end(kCrossoverNames)}},
          {.name = "crossover_probability",
           .default_value = 0.9,
           .most = 1,
           .meaning = "that a child has several parents, not one"},
          {.name = "epsilon",
           .most = 1000,
           .meaning = "of spx: how much the simplex grows; sqrt(numbers + 2)",
           .optional = true},
          {.name = "eta",
           .most = 1000,
           .meaning = "of sbx, vsbx: the more, the nearer to parents; 2, of several objectives 20",
           .optional = true},
          {.name = "mutation",
           .meaning = "whether a mutated number is drawn anew, or near what it was",
           .words = {"uniform", "polynomial"}},
          {.name = "mutation_eta",
           .most = 1000,
           .meaning = "of the mutation polynomial: the more, the nearer; 20",
           .optional = true},
          {.name = "mutation_probability",
           .most = 1,
           .meaning = "that a parameter of a child mutates; 0: one in their number"},
          {.name = "population_size",
           .default_value = 50,
           .least = 2,
           .most = 10000,
           .whole = true,
           .meaning = "trials of a generation, and parents of the next"},
          {.name = "sigma_eta",
           .most = 100,
           .meaning = "of undx: across the line through two parents; 0.35 / sqrt(numbers)",
           .optional = true},
          {.name = "sigma_xi",
           .most = 100,
           .meaning = "of undx: along the line through two parents; 0.5",
           .optional = true},
          {.name = "swapping_probability",
           .default_value = 0.5,
           .most = 1,
           .meaning = "that an option, or a number crossed uniformly, is the first parent's"},
          {.name = "uniform_crossover_probability",
           .most = 1,
           .meaning = "of sbx, vsbx: that two children exchange a number; 0.5",
           .optional = true}};
}

absl::StatusOr<Breeding> BreedingOf(const OptionValues& options) {
  Breeding breeding{.population_size = static_cast<std::size_t>(options.Whole("population_size")),
                    .crossover = options.Chosen<Crossover>("crossover"),
                    .crossover_probability = options["crossover_probability"],
                    .swapping_probability = options["swapping_probability"],
                    .mutation_probability = options["mutation_probability"],
                    .mutation = options.Chosen<Mutation>("mutation")};
  if (breeding.population_size < ParentCount(breeding.crossover)) {
    return OptionNeeds("population_size", "at least 3 for a crossover of three parents",
                       options["population_size"]);
  }
  ESPALIER_ASSIGN_OR_RETURN(breeding.spread, SpreadOf(options, breeding.crossover));
  if (const std::optional<double> eta = options.Given("mutation_eta")) {
    if (breeding.mutation != Mutation::kPolynomial) {
      return OptionNeeds("mutation_eta", "the mutation polynomial beside it", *eta);
    }
    breeding.mutation_eta = *eta;
  }
  return breeding;
}

Parameters ChildOf(const SamplerInput& input, const Population& parents, const Breeding& breeding,
                   Random& random) {
  if (random.Uniform() < breeding.crossover_probability) {
    return Mutated(input.space, Crossed(input, parents, breeding, random), breeding, random);
  }
  const Individual& parent = parents[random.Below(parents.size())];
  return Mutated(input.space, *parent.trial->parameters, breeding, random);
}

std::unique_ptr<Sampler> MakeGeneticSampler(const Breeding& breeding, Select select,
                                            std::function<double(std::size_t)> work,
                                            std::size_t objectives) {
  return std::make_unique<GeneticSampler>(breeding, std::move(select), std::move(work), objectives);
}

}  // namespace espalier::samplers
