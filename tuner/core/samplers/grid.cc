#include <algorithm>
#include <utility>

#include "search_spaces/combinations.h"
#include "search_spaces/unit_interval.h"
#include "tuner/core/samplers/configurations.h"
#include "tuner/core/samplers/sampler.h"

namespace espalier::samplers {
namespace {

// One parameter's ticks. Finite ones are computed on demand: a randint may have billions.
class Ticks {
 public:
  Ticks(const Distribution& distribution, std::uint64_t points) : distribution_(&distribution) {
    if (const auto count = Cardinality(distribution)) {
      count_ = *count;
      return;
    }
    for (std::uint64_t i = 0; i < points; ++i) {
      const double u = (static_cast<double>(i) + 0.5) / static_cast<double>(points);
      ParameterValue value = FromUnit(distribution, u);
      // A coarse q maps several quantiles to one value.
      if (values_.empty() || !(values_.back() == value)) values_.push_back(std::move(value));
    }
    count_ = values_.size();
  }

  std::uint64_t count() const { return count_; }
  ParameterValue At(std::uint64_t i) const {
    return values_.empty() ? ValueAt(*distribution_, i) : values_[i];
  }
  // Which tick the value is; nullopt if it is none. Requires one that the distribution contains.
  std::optional<std::uint64_t> Which(const ParameterValue& value) const {
    if (values_.empty()) return IndexOf(*distribution_, value);
    const auto at = std::lower_bound(values_.begin(), values_.end(), value,
                                     [](const ParameterValue& a, const ParameterValue& b) {
                                       return *NumberOf(a) < *NumberOf(b);
                                     });
    if (at == values_.end() || !SameValue(*at, value)) return std::nullopt;
    return static_cast<std::uint64_t>(at - values_.begin());
  }

 private:
  const Distribution* distribution_;
  std::uint64_t count_ = 0;
  std::vector<ParameterValue> values_;
};

// The points of a space's grid: the combinations of the ticks of its active parameters, by number.
class Grid {
 public:
  Grid(const SearchSpace& space, std::uint64_t points)
      : space_(&space), ticks_(TicksOf(space, points)), combinations_(space, CountsOf(ticks_)) {}

  std::uint64_t count() const { return combinations_.count(); }

  Parameters At(std::uint64_t number) const {
    const Combinations::Indices indices = *combinations_.At(number);
    Parameters parameters;
    for (std::size_t i = 0; i < ticks_.size(); ++i) {
      if (!indices[i]) continue;
      parameters.push_back({space_->dimensions()[i].name, ticks_[i].At(*indices[i])});
    }
    return parameters;
  }

  // The numbers of the points that were tried or are running, ascending, each once.
  std::vector<std::uint64_t> Taken(const SamplerInput& input) const {
    return NumbersTried(input, combinations_, [this](std::size_t i, const ParameterValue& value) {
      return ticks_[i].Which(value);
    });
  }

 private:
  static std::vector<Ticks> TicksOf(const SearchSpace& space, std::uint64_t points) {
    std::vector<Ticks> ticks;
    for (const auto& dimension : space.dimensions()) {
      ticks.emplace_back(dimension.distribution, points);
    }
    return ticks;
  }
  static std::vector<std::uint64_t> CountsOf(const std::vector<Ticks>& ticks) {
    std::vector<std::uint64_t> counts;
    for (const Ticks& of_one : ticks) counts.push_back(of_one.count());
    return counts;
  }

  const SearchSpace* space_;
  std::vector<Ticks> ticks_;
  Combinations combinations_;
};

// Every combination of active parameters, the last parameter fastest: each trial gets the point of
// its own number, or where that one was tried or is running, the next one that is left. A
// continuous parameter has `points` ticks at the middles of equally probable parts, so log scales
// are spaced evenly in the logarithm.
class GridSampler final : public Sampler {
 public:
  explicit GridSampler(std::uint64_t points) : points_(points) {}

  bool avoids_tried(const SearchSpace&) const override { return true; }

  std::optional<Parameters> Suggest(const SamplerInput& input, Random&) const override {
    const Grid grid(input.space, points_);
    const auto own = static_cast<std::uint64_t>(std::max<std::int64_t>(input.trial_number, 0));
    // No study comes to the end of so many, and they cannot all be numbered.
    if (grid.count() > kMostNumbered) return grid.At(own);
    const std::vector<std::uint64_t> taken = grid.Taken(input);
    if (taken.size() == grid.count()) return std::nullopt;
    std::uint64_t number = own % grid.count();
    auto next = std::lower_bound(taken.begin(), taken.end(), number);
    while (next != taken.end() && *next == number) {
      ++next;
      ++number;
      if (number < grid.count()) continue;
      number = 0;
      next = taken.begin();
    }
    return grid.At(number);
  }

 private:
  std::uint64_t points_;
};

}  // namespace

PluginRow<Sampler> GridRow() {
  return {
      {.name = "grid",
       .summary = "every combination; the last parameter varies fastest",
       .options = {{.name = "points",
                    .default_value = 5,
                    .least = 1,
                    .most = 1000,
                    .whole = true,
                    .meaning = "values of each continuous parameter, equally probable"}}},
      [](const OptionValues& options) {
        return std::make_unique<GridSampler>(static_cast<std::uint64_t>(options.Whole("points")));
      }};
}

}  // namespace espalier::samplers
