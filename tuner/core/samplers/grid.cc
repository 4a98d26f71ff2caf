#include <algorithm>
#include <utility>

#include "search_spaces/combinations.h"
#include "search_spaces/unit_interval.h"
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

 private:
  const Distribution* distribution_;
  std::uint64_t count_ = 0;
  std::vector<ParameterValue> values_;
};

// Every combination of active parameters, by trial number, the last parameter fastest. A continuous
// parameter has `points` ticks at the middles of equally probable parts, so log scales are spaced
// evenly in the logarithm.
class GridSampler final : public Sampler {
 public:
  explicit GridSampler(std::uint64_t points) : points_(points) {}

  std::optional<Parameters> Suggest(const SamplerInput& input, Random&) const override {
    const auto& dimensions = input.space.dimensions();
    std::vector<Ticks> ticks;
    std::vector<std::uint64_t> counts;
    for (const auto& dimension : dimensions) {
      ticks.emplace_back(dimension.distribution, points_);
      counts.push_back(ticks.back().count());
    }
    const auto number = static_cast<std::uint64_t>(std::max<std::int64_t>(input.trial_number, 0));
    const Combinations combinations(input.space, std::move(counts));
    const std::optional<Combinations::Indices> indices = combinations.At(number);
    if (!indices) return std::nullopt;
    Parameters parameters;
    for (std::size_t i = 0; i < dimensions.size(); ++i) {
      const std::optional<std::uint64_t> tick = (*indices)[i];
      if (tick) parameters.push_back({dimensions[i].name, ticks[i].At(*tick)});
    }
    return parameters;
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
