#include "tuner/core/samplers/cma_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "tuner/core/samplers/before.h"

namespace espalier::samplers {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

// Draws that all trials of a study have in common have seeds of their own.
constexpr std::uint64_t kStarts = 1;
constexpr std::uint64_t kCoordinates = 2;

constexpr double kLeastSigma = 1e-10;
constexpr std::size_t kMostPopulation = 1'000'000;

// In the order in which they came.
std::vector<const Observation*> InOrder(std::span<const Observation> ended) {
  std::vector<const Observation*> ordered;
  ordered.reserve(ended.size());
  for (const Observation& observation : ended) ordered.push_back(&observation);
  const auto earlier = [](const Observation* a, const Observation* b) {
    return std::tie(a->at, a->trial_number) < std::tie(b->at, b->trial_number);
  };
  if (!std::is_sorted(ordered.begin(), ordered.end(), earlier)) {
    std::stable_sort(ordered.begin(), ordered.end(), earlier);
  }
  return ordered;
}

// Parameters by name, for one who asks in the order of the space, as samplers' own are.
class Reader {
 public:
  explicit Reader(const Parameters& parameters) : parameters_(parameters) {}

  const ParameterValue* Find(const std::string& name) {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const std::size_t at =
          next_ + i < parameters_.size() ? next_ + i : next_ + i - parameters_.size();
      if (parameters_[at].name != name) continue;
      next_ = at + 1;
      return &parameters_[at].value;
    }
    return nullptr;
  }

 private:
  const Parameters& parameters_;
  std::size_t next_ = 0;
};

SeenNumber SeenNumberOf(const ParameterValue* value) {
  const std::optional<double> number = value ? NumberOf(*value) : std::nullopt;
  return number && std::isfinite(*number) ? SeenNumber{*number, value->index()} : SeenNumber{};
}

bool SameNumber(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

bool SeemsToBe(const Observation& observation, const TakenTrial& taken) {
  return observation.trial_number == taken.trial_number && observation.pruned == taken.pruned &&
         observation.last_step == taken.last_step && SameNumber(observation.value, taken.value);
}

bool HasNumbersOf(const Observation& observation, const CmaSpace& space, const TakenTrial& taken) {
  Reader reader(*observation.parameters);
  for (std::size_t i = 0; i < space.dimensions(); ++i) {
    const std::string& name = space.space().dimensions()[space.place_in_space(i)].name;
    if (SeenNumberOf(reader.Find(name)) != taken.seen[i]) return false;
  }
  return true;
}

TakenTrial TakenTrialOf(const Observation& observation, const CmaSpace& space) {
  TakenTrial taken{.trial_number = observation.trial_number,
                   .value = observation.value,
                   .pruned = observation.pruned,
                   .last_step = observation.last_step,
                   .counts = true,
                   .seen = {}};
  Reader reader(*observation.parameters);
  for (std::size_t i = 0; i < space.dimensions(); ++i) {
    const auto& dimension = space.space().dimensions()[space.place_in_space(i)];
    const ParameterValue* value = reader.Find(dimension.name);
    taken.seen.push_back(SeenNumberOf(value));
    if (value == nullptr || !Contains(dimension.distribution, *value)) taken.counts = false;
  }
  return taken;
}

// Whether the results begin with those of the model, each as `same` says.
template <typename Same>
bool BeginsWith(const std::vector<const Observation*>& results, const CmaModel& known, Same same) {
  if (results.size() < known.taken) return false;
  std::size_t at = 0;
  for (const auto& generation : known.generations) {
    for (const TakenTrial& taken : *generation) {
      const Observation& result = *results[at++];
      if (!SeemsToBe(result, taken) || !same(result, taken)) return false;
    }
  }
  return true;
}

bool OfOneStudy(const SamplerInput& input, const CmaModel& known) {
  return known.space == input.space && known.direction == input.direction &&
         known.study_seed == input.study_seed &&
         std::equal(input.before.begin(), input.before.end(), known.before->begin(),
                    known.before->end());
}

std::size_t PopulationOf(const CmaSettings& settings, std::size_t dimensions) {
  return settings.population > 0 ? settings.population : CmaPopulation(dimensions);
}

// Separable CMA-ES is of no use in one dimension: the covariance is the diagonal.
CmaVariant VariantOf(const CmaSettings& settings, std::size_t dimensions) {
  const bool separable = settings.variant == CmaVariant::kSeparable;
  return separable && dimensions == 1 ? CmaVariant::kFull : settings.variant;
}

CmaEs Started(const CmaSettings& settings, const CmaStart& start, std::size_t population) {
  return CmaEs(start, population, VariantOf(settings, static_cast<std::size_t>(start.mean.size())));
}

CmaStart Around(const CmaSettings& settings, VectorXd mean) {
  const double sigma = settings.sigma > 0 ? settings.sigma : 1.0 / 6;
  return {std::move(mean), std::max(sigma, kLeastSigma), {}};
}

// The model's axes of which another study's trials tell.
std::vector<Index> SharedAxes(const SamplerInput& input, const CmaSpace& space) {
  const std::vector<bool> shared = SharedDimensions(input);
  std::vector<Index> axes;
  for (std::size_t i = 0; i < space.dimensions(); ++i) {
    if (shared[space.place_in_space(i)]) axes.push_back(static_cast<Index>(i));
  }
  return axes;
}

// From the middle of the space, or where another study's trials were good: as wide as ever along
// the axes of which they tell nothing.
CmaStart FirstStart(const SamplerInput& input, const CmaSpace& space, const CmaSettings& settings) {
  const auto n = static_cast<Index>(space.dimensions());
  CmaStart start = Around(settings, VectorXd::Constant(n, 0.5));
  const std::vector<Index> axes = SharedAxes(input, space);
  if (axes.empty()) return start;
  const std::vector<Parameters> before = CompletedBefore(input);
  MatrixXd points(static_cast<Index>(axes.size()), static_cast<Index>(before.size()));
  for (Index i = 0; i < points.rows(); ++i) {
    const auto axis = static_cast<std::size_t>(axes[static_cast<std::size_t>(i)]);
    const std::string& name = space.space().dimensions()[space.place_in_space(axis)].name;
    for (Index j = 0; j < points.cols(); ++j) {
      points(i, j) = space.axis(axis).Place(*Find(before[static_cast<std::size_t>(j)], name));
    }
  }
  const CmaStart warm = WarmStart(points);
  const double other = start.sigma / warm.sigma;
  start.covariance = other * other * MatrixXd::Identity(n, n);
  start.covariance(axes, axes) = warm.covariance;
  start.mean(axes) = warm.mean;
  start.sigma = warm.sigma;
  return start;
}

std::optional<CmaMargin> MarginOf(const CmaSpace& space, const CmaEs& cma) {
  if (space.stepped().empty()) return std::nullopt;
  return CmaMargin(cma, space.stepped());
}

CmaModel FirstModel(const SamplerInput& input, const CmaSpace& space, const CmaSettings& settings) {
  const std::size_t population = PopulationOf(settings, space.dimensions());
  CmaModel model{.space = input.space,
                 .direction = input.direction,
                 .study_seed = input.study_seed,
                 .before = std::make_shared<const std::vector<ScoredTrial>>(input.before.begin(),
                                                                            input.before.end()),
                 .generations = {},
                 .cma = Started(settings, FirstStart(input, space, settings), population)};
  model.first_population = population;
  model.margin = MarginOf(space, model.cma);
  return model;
}

std::size_t Multiplied(std::size_t population, double factor) {
  const double product = std::floor(static_cast<double>(population) * factor);
  return static_cast<std::size_t>(std::min(product, static_cast<double>(kMostPopulation)));
}

// A new start from anywhere in the space, once a start has come to its end.
void StartAnew(const CmaSpace& space, const CmaSettings& settings, CmaModel& model) {
  Random random(MixSeed(MixSeed(model.study_seed, kStarts), ++model.starts));
  std::size_t population = Multiplied(model.cma.population(), settings.restart_factor);
  if (settings.restart == CmaRestart::kBipop) {
    (model.small ? model.trials_of_small : model.trials_of_large) +=
        model.cma.generation() * model.cma.population();
    model.small = model.trials_of_small < model.trials_of_large;
    if (!model.small) ++model.large_starts;
    const double most = std::pow(settings.restart_factor, static_cast<double>(model.large_starts));
    const double u = random.Uniform();
    population = Multiplied(model.first_population, model.small ? std::pow(most, u * u) : most);
  }
  VectorXd mean(static_cast<Index>(space.dimensions()));
  for (double& one : mean) one = random.Uniform();
  model.cma = Started(settings, Around(settings, std::move(mean)), population);
  model.margin = MarginOf(space, model.cma);
}

enum class ResultKind { kComplete, kPruned, kWithoutValue };

// How good a result is: complete ones by their loss, then pruned ones, those that came further
// first, then those without a value.
struct ResultRank {
  ResultKind kind;
  std::int64_t steps_missing;
  double loss;

  friend bool operator<(const ResultRank& a, const ResultRank& b) {
    return std::tie(a.kind, a.steps_missing, a.loss) < std::tie(b.kind, b.steps_missing, b.loss);
  }
};

ResultRank RankOf(const TakenTrial& taken, Direction direction) {
  if (!std::isfinite(taken.value)) return {ResultKind::kWithoutValue, 0, 0};
  const double loss = direction == Direction::kMinimize ? taken.value : -taken.value;
  if (taken.pruned) return {ResultKind::kPruned, -taken.last_step, loss};
  return {ResultKind::kComplete, 0, loss};
}

VectorXd PlaceOf(const TakenTrial& taken, const CmaSpace& space, const CmaModel& model) {
  VectorXd place(static_cast<Index>(space.dimensions()));
  for (std::size_t i = 0; i < space.dimensions(); ++i) {
    place[static_cast<Index>(i)] = space.axis(i).Place(taken.seen[i].number);
  }
  if (!model.margin) return place;
  Random random(MixSeed(MixSeed(model.study_seed, kCoordinates),
                        static_cast<std::uint64_t>(taken.trial_number)));
  for (std::size_t s = 0; s < space.stepped().size(); ++s) {
    const SteppedDimension& stepped = space.stepped()[s];
    double& at = place[static_cast<Index>(stepped.dimension)];
    at = model.margin->CoordinateOf(model.cma, s, stepped.IndexAt(at), random);
  }
  return place;
}

// A generation of which no trial has a value tells nothing.
void Learn(const std::vector<TakenTrial>& generation, const CmaSpace& space,
           const CmaSettings& settings, CmaModel& model) {
  std::vector<std::pair<ResultRank, const TakenTrial*>> ranked;
  for (const TakenTrial& taken : generation) {
    if (taken.counts) ranked.emplace_back(RankOf(taken, model.direction), &taken);
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  if (ranked.front().first.kind == ResultKind::kWithoutValue) return;
  MatrixXd points(static_cast<Index>(space.dimensions()), static_cast<Index>(ranked.size()));
  for (std::size_t i = 0; i < ranked.size(); ++i) {
    points.col(static_cast<Index>(i)) = PlaceOf(*ranked[i].second, space, model);
  }
  const auto loss = [&](const auto& of) {
    const bool complete = of.first.kind == ResultKind::kComplete;
    return complete ? of.first.loss : std::numeric_limits<double>::infinity();
  };
  model.cma.Tell(points, loss(ranked.front()), loss(ranked.back()));
  if (model.margin) model.margin->Correct(model.cma);
  if (settings.restart != CmaRestart::kNone && model.cma.ShouldStop()) {
    StartAnew(space, settings, model);
  }
}

// The results from the first one on that make a generation; empty if they are too few.
std::vector<TakenTrial> NextGeneration(const std::vector<const Observation*>& results,
                                       std::size_t first, std::size_t population,
                                       const CmaSpace& space) {
  std::vector<TakenTrial> generation;
  std::size_t counted = 0;
  for (std::size_t i = first; i < results.size() && counted < population; ++i) {
    generation.push_back(TakenTrialOf(*results[i], space));
    if (generation.back().counts) ++counted;
  }
  if (counted < population) generation.clear();
  return generation;
}

}  // namespace

CmaSpace::CmaSpace(const SearchSpace& space, bool margin) : space_(&space) {
  const auto steps = margin ? NumericAxis::Steps::kPoints : NumericAxis::Steps::kCells;
  for (std::size_t i = 0; i < space.dimensions().size(); ++i) {
    const auto& [name, distribution, condition] = space.dimensions()[i];
    if (condition) continue;
    const std::optional<NumericAxis> axis = NumericAxis::Of(distribution, steps);
    if (!axis) continue;
    if (margin && axis->count() > 0) stepped_.push_back({axes_.size(), axis->count()});
    axes_.push_back(*axis);
    places_.push_back(i);
  }
}

bool TellsBefore(const SamplerInput& input, const CmaSpace& space) {
  return !SharedAxes(input, space).empty();
}

bool SeemsOf(const SamplerInput& input, const CmaModel& known) {
  return OfOneStudy(input, known) &&
         BeginsWith(InOrder(input.ended), known, [](const auto&, const auto&) { return true; });
}

std::shared_ptr<const CmaModel> ModelOf(const SamplerInput& input, const CmaSpace& space,
                                        const CmaSettings& settings,
                                        std::shared_ptr<const CmaModel> known) {
  const std::vector<const Observation*> results = InOrder(input.ended);
  const auto same = [&](const Observation& result, const TakenTrial& taken) {
    return HasNumbersOf(result, space, taken);
  };
  const bool usable = known && OfOneStudy(input, *known) && BeginsWith(results, *known, same);
  if (!usable) known = std::make_shared<const CmaModel>(FirstModel(input, space, settings));
  std::shared_ptr<CmaModel> next;  // a copy, once there is something to learn
  while (!input.stop.stop_requested()) {
    const CmaModel& last = next ? *next : *known;
    std::vector<TakenTrial> generation =
        NextGeneration(results, last.taken, last.cma.population(), space);
    if (generation.empty()) break;
    if (!next) next = std::make_shared<CmaModel>(*known);
    Learn(generation, space, settings, *next);
    next->taken += generation.size();
    next->generations.push_back(
        std::make_shared<const std::vector<TakenTrial>>(std::move(generation)));
  }
  if (next) return next;
  return known;
}

}  // namespace espalier::samplers
