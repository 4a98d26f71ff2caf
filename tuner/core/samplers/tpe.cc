#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stop_token>
#include <utility>

#include "tuner/core/samplers/axis.h"
#include "tuner/core/samplers/configurations.h"
#include "tuner/core/samplers/parzen.h"
#include "tuner/core/samplers/sampler.h"

namespace espalier::samplers {
namespace {

struct Settings {
  std::size_t startup_trials;
  std::size_t candidates;
  double gamma;           // share of the trials that counts as good ...
  std::size_t most_good;  // ... up to this many
  bool multivariate;
};

// If there are more bad trials, the newest count: the older ones have faded, and a study of any
// length draws as quickly as one of so many.
constexpr std::size_t kMostBad = 1000;

// To find a configuration that was not tried, where their number is finite.
constexpr int kAttempts = 8;

// What an observation counts as.
struct Seen {
  const Observation* observation;
  int rank;  // complete, then pruned, then without a value
  double loss;
};

enum Rank : int { kComplete, kPruned, kNoValue };

// The better trial first. Pruned ones rank behind all complete ones, those that got further first.
bool RanksBefore(const Seen& a, const Seen& b) {
  if (a.rank != b.rank) return a.rank < b.rank;
  const Observation& left = *a.observation;
  const Observation& right = *b.observation;
  if (a.rank == kPruned && left.last_step != right.last_step) {
    return left.last_step > right.last_step;
  }
  if (a.rank != kNoValue && a.loss != b.loss) return a.loss < b.loss;
  return left.trial_number < right.trial_number;
}

// Dimensions that are active together, modelled together: those without condition, or the
// parameters of one option.
struct Group {
  std::vector<std::size_t> dimensions;
  std::vector<Axis> axes;  // of the dimensions
};

// In the space's order: what a group depends on comes before it.
std::vector<Group> GroupsOf(const SearchSpace& space) {
  std::vector<Group> groups;
  std::vector<std::optional<SearchSpace::Condition>> conditions;
  for (std::size_t i = 0; i < space.dimensions().size(); ++i) {
    const auto& [name, distribution, condition] = space.dimensions()[i];
    const auto known = std::find(conditions.begin(), conditions.end(), condition);
    const auto at = static_cast<std::size_t>(known - conditions.begin());
    if (known == conditions.end()) {
      conditions.push_back(condition);
      groups.emplace_back();
    }
    groups[at].dimensions.push_back(i);
    groups[at].axes.emplace_back(distribution);
  }
  return groups;
}

// nullopt of a trial in which the group was not active.
std::optional<Point> Place(const SearchSpace& space, const Group& group,
                           const Parameters& parameters) {
  Point point(group.axes.size());
  for (std::size_t i = 0; i < point.size(); ++i) {
    const ParameterValue* value = ValueOf(space, group.dimensions[i], parameters);
    if (value == nullptr) return std::nullopt;
    point[i] = group.axes[i].Place(*value);
  }
  return point;
}

bool IsPlaced(const SearchSpace& space, const Group& group, const Parameters& parameters) {
  return std::all_of(group.dimensions.begin(), group.dimensions.end(),
                     [&](std::size_t d) { return ValueOf(space, d, parameters) != nullptr; });
}

// In the order of the trials.
std::vector<Seen> Observed(const SamplerInput& input, const Group& group) {
  std::vector<Seen> all;
  for (const Observation& o : input.ended) {
    if (!IsPlaced(input.space, group, *o.parameters)) continue;
    const int rank = !Counts(input.direction, o.value) ? kNoValue : o.pruned ? kPruned : kComplete;
    all.push_back({&o, rank, input.direction == Direction::kMinimize ? o.value : -o.value});
  }
  const auto earlier = [](const Seen& a, const Seen& b) {
    return a.observation->trial_number < b.observation->trial_number;
  };
  if (!std::is_sorted(all.begin(), all.end(), earlier)) {
    std::sort(all.begin(), all.end(), earlier);
  }
  return all;
}

// Which of them are the n best.
std::vector<bool> BestOf(const std::vector<Seen>& seen, std::size_t n) {
  std::vector<std::size_t> order(seen.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::nth_element(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(n), order.end(),
                   [&seen](std::size_t a, std::size_t b) { return RanksBefore(seen[a], seen[b]); });
  std::vector<bool> best(seen.size());
  for (std::size_t i = 0; i < n; ++i) best[order[i]] = true;
  return best;
}

std::size_t CountValued(const std::vector<Seen>& seen) {
  return static_cast<std::size_t>(
      std::count_if(seen.begin(), seen.end(), [](const Seen& s) { return s.rank != kNoValue; }));
}

// In the order of the trials. Of more than 25, the older ones fade linearly.
std::vector<double> Weights(std::size_t n) {
  constexpr std::size_t kFull = 25;
  std::vector<double> weights(n, 1.0);
  const std::size_t fading = n > kFull ? n - kFull : 0;
  for (std::size_t i = 0; i < fading; ++i) {
    const double share =
        fading == 1 ? 0.0 : static_cast<double>(i) / static_cast<double>(fading - 1);
    weights[i] = (1.0 - share) / static_cast<double>(n) + share;
  }
  return weights;
}

// Good and bad points, and where the densities of the two differ most.
class Split {
 public:
  Split(const std::vector<Axis>& axes, std::vector<Point> good, std::vector<Point> bad)
      : axes_(axes), good_(std::move(good)), bad_(std::move(bad)) {}

  // The candidate, drawn from the good density, with the largest ratio of good to bad.
  Point Best(const Settings& settings, const std::stop_token& stop, Random& random) const {
    Point best(axes_.size());
    if (settings.multivariate) {
      std::vector<std::size_t> all(axes_.size());
      std::iota(all.begin(), all.end(), std::size_t{0});
      SearchAxes({all, Bandwidth::kShared, settings.candidates}, stop, random, best);
    } else {
      for (std::size_t i = 0; i < axes_.size(); ++i) {
        SearchAxes({{i}, Bandwidth::kNeighbors, settings.candidates}, stop, random, best);
      }
    }
    return best;
  }

 private:
  ParzenEstimator Density(const std::vector<Point>& points, const std::vector<std::size_t>& which,
                          Bandwidth bandwidth) const {
    std::vector<const Axis*> axes;
    for (const std::size_t i : which) axes.push_back(&axes_[i]);
    std::vector<Point> parts;
    parts.reserve(points.size());
    for (const Point& point : points) {
      Point part;
      part.reserve(which.size());
      for (const std::size_t i : which) part.push_back(point[i]);
      parts.push_back(std::move(part));
    }
    return {std::move(axes), std::move(parts), Weights(points.size()), bandwidth};
  }

  struct Search {
    std::vector<std::size_t> which;  // of the axes
    Bandwidth bandwidth;
    std::size_t candidates;
  };
  void SearchAxes(const Search& search, const std::stop_token& stop, Random& random,
                  Point& best) const {
    const std::vector<std::size_t>& which = search.which;
    const ParzenEstimator good = Density(good_, which, search.bandwidth);
    const ParzenEstimator bad = Density(bad_, which, search.bandwidth);
    double best_ratio = -std::numeric_limits<double>::infinity();
    for (std::size_t c = 0; c < search.candidates && !stop.stop_requested(); ++c) {
      const Point candidate = good.Sample(random);
      const double ratio = good.LogDensity(candidate) - bad.LogDensity(candidate);
      if (c > 0 && ratio <= best_ratio) continue;
      best_ratio = ratio;
      for (std::size_t i = 0; i < which.size(); ++i) best[which[i]] = candidate[i];
    }
  }

  const std::vector<Axis>& axes_;
  std::vector<Point> good_;
  std::vector<Point> bad_;
};

// Tree-structured Parzen estimator (Bergstra et al. 2011), by default over all parameters that are
// active together at once. Parameters of an option are modelled from the trials that chose it.
// Running trials count as bad, so that trials asked for together do not crowd on one spot.
class TpeSampler final : public Sampler {
 public:
  explicit TpeSampler(Settings settings) : settings_(settings) {}

  bool learns() const override { return true; }

  double Work(const SamplerInput& input) const override {
    const auto kernels =
        static_cast<double>(std::min(input.ended.size(), kMostBad + settings_.most_good) +
                            input.running.size() + 2);  // a prior each
    const double attempts = input.space.Cardinality() ? kAttempts : 1;
    return attempts * kernels * static_cast<double>(settings_.candidates) *
           static_cast<double>(input.space.dimensions().size());
  }

  std::optional<Parameters> Suggest(const SamplerInput& input, Random& random) const override {
    const std::optional<TriedConfigurations> tried = TriedConfigurations::Of(input);
    if (tried && tried->Exhausted()) return std::nullopt;
    const TriedConfigurations* known = tried ? &*tried : nullptr;
    const std::vector<Group> groups = GroupsOf(input.space);
    if (groups.empty()) return DrawNew(input.space, known, random);  // a program without parameters
    std::vector<std::vector<Seen>> seen;
    for (const Group& group : groups) seen.push_back(Observed(input, group));
    // The first group is active in every trial.
    if (CountValued(seen.front()) < std::max<std::size_t>(settings_.startup_trials, 1)) {
      return DrawNew(input.space, known, random);
    }
    std::vector<Split> splits;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      splits.push_back(MakeSplit(input, groups[g], seen[g]));
    }
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      Parameters parameters = Chosen(input, groups, splits, random);
      if (known == nullptr || !known->Contains(parameters)) return parameters;
    }
    return DrawNew(input.space, known, random);
  }

 private:
  Split MakeSplit(const SamplerInput& input, const Group& group,
                  const std::vector<Seen>& seen) const {
    const std::size_t valued = CountValued(seen);
    const auto share =
        static_cast<std::size_t>(std::ceil(settings_.gamma * static_cast<double>(valued)));
    const std::vector<bool> is_good = BestOf(seen, std::min({share, settings_.most_good, valued}));
    const auto bad_in_all =
        static_cast<std::size_t>(std::count(is_good.begin(), is_good.end(), false));
    std::size_t passed_over = bad_in_all - std::min(bad_in_all, kMostBad);
    std::vector<Point> good, bad;
    for (std::size_t i = 0; i < seen.size(); ++i) {
      if (!is_good[i] && passed_over > 0) {
        --passed_over;
        continue;
      }
      (is_good[i] ? good : bad)
          .push_back(*Place(input.space, group, *seen[i].observation->parameters));
    }
    for (const Parameters* parameters : input.running) {
      if (auto point = Place(input.space, group, *parameters)) bad.push_back(*std::move(point));
    }
    return {group.axes, std::move(good), std::move(bad)};
  }

  // Group by group, those that the choices made so far activate; in the space's order.
  Parameters Chosen(const SamplerInput& input, const std::vector<Group>& groups,
                    const std::vector<Split>& splits, Random& random) const {
    const SearchSpace& space = input.space;
    const auto& dimensions = space.dimensions();
    Parameters chosen;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const Group& group = groups[g];
      if (!space.IsActive(group.dimensions.front(), chosen)) continue;
      const Point point = splits[g].Best(settings_, input.stop, random);
      for (std::size_t i = 0; i < point.size(); ++i) {
        chosen.push_back({dimensions[group.dimensions[i]].name, group.axes[i].ValueOf(point[i])});
      }
    }
    if (groups.size() == 1) return chosen;
    Parameters ordered;
    for (const auto& dimension : dimensions) {
      const ParameterValue* value = Find(chosen, dimension.name);
      if (value != nullptr) ordered.push_back({dimension.name, *value});
    }
    return ordered;
  }

  Settings settings_;
};

}  // namespace

PluginRow<Sampler> TpeRow() {
  return {{.name = "tpe",
           .summary = "tree-structured Parzen estimator: draws where good trials are dense",
           .options = {{.name = "candidates",
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
                        .meaning = "most trials that count as good"},
                       {.name = "multivariate",
                        .default_value = 1,
                        .meaning = "models parameters together; else each by itself",
                        .flag = true},
                       {.name = "startup_trials",
                        .default_value = 10,
                        .most = 10000,
                        .whole = true,
                        .meaning =
                            "trials with a value before the first estimate; random until then"}}},
          [](const OptionValues& options) {
            return std::make_unique<TpeSampler>(Settings{
                .startup_trials = static_cast<std::size_t>(options.Whole("startup_trials")),
                .candidates = static_cast<std::size_t>(options.Whole("candidates")),
                .gamma = options["gamma"],
                .most_good = static_cast<std::size_t>(options.Whole("most_good")),
                .multivariate = options.Flag("multivariate")});
          }};
}

}  // namespace espalier::samplers
