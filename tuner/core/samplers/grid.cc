#include <algorithm>

#include "search_spaces/unit_interval.h"
#include "tuner/core/samplers/table.h"

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

// Every combination, by trial number, the last parameter fastest. A continuous parameter has
// `points` ticks at the middles of equally probable parts, so log scales are spaced evenly in the
// logarithm.
class GridSampler final : public Sampler {
 public:
  explicit GridSampler(std::uint64_t points) : points_(points) {}

  std::optional<Parameters> Suggest(const SamplerInput& input, Random&) const override {
    const auto& dimensions = input.space.dimensions();
    Parameters parameters(dimensions.size());
    auto number = static_cast<std::uint64_t>(std::max<std::int64_t>(input.trial_number, 0));
    for (std::size_t i = dimensions.size(); i-- > 0;) {
      const Ticks ticks(dimensions[i].distribution, points_);
      parameters[i] = {dimensions[i].name, ticks.At(number % ticks.count())};
      number /= ticks.count();
    }
    if (number > 0) return std::nullopt;  // past the last combination
    return parameters;
  }

 private:
  std::uint64_t points_;
};

}  // namespace

Row GridRow() {
  return {"grid",
          {{.name = "points", .standard = 5, .least = 1, .most = 1000, .whole = true}},
          [](const Options& options) -> std::unique_ptr<Sampler> {
            return std::make_unique<GridSampler>(static_cast<std::uint64_t>(options.at("points")));
          }};
}

}  // namespace espalier::samplers
