#include "tuner/core/population/perturbation.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "search_spaces/distribution.h"

namespace espalier {

namespace {

template <typename Kind>
concept Bounded = requires(const Kind& kind) {
  kind.low;
  kind.high;
};
template <typename Kind>
concept Gridded = requires(const Kind& kind) {
  kind.q;
};

ParameterValue Scaled(const Distribution& distribution, double number, double factor) {
  return std::visit(
      [&](const auto& kind) -> ParameterValue {
        using Kind = std::decay_t<decltype(kind)>;
        double value = number * factor;
        if constexpr (std::is_same_v<Kind, RandInt>) {
          // Within the bounds first, so that it fits an integer.
          value = std::clamp(std::trunc(value), static_cast<double>(kind.low),
                             static_cast<double>(kind.high - 1));
          return static_cast<std::int64_t>(value);
        } else {
          if constexpr (Gridded<Kind>) value = std::nearbyint(value / kind.q) * kind.q;
          if constexpr (Bounded<Kind>) value = std::clamp(value, kind.low, kind.high);
          return value;
        }
      },
      distribution);
}

ParameterValue Explored(const PopulationSpec& population, const Distribution& distribution,
                        const ParameterValue& value, Random& random) {
  const bool resample = random.Uniform() < population.resample_probability;
  if (resample || !Contains(distribution, value)) return Draw(distribution, random);
  if (const auto* choice = std::get_if<Choice>(&distribution)) {
    const std::uint64_t at = IndexOf(distribution, value).value_or(0);
    const std::uint64_t last = choice->options.size() - 1;
    const bool down = random.Below(2) == 0;
    return ValueAt(distribution,
                   down ? at - std::min<std::uint64_t>(at, 1) : std::min(at + 1, last));
  }
  const std::optional<double> number = NumberOf(value);
  ESPALIER_CHECK(number.has_value(), "only choices have values that are no numbers");
  return Scaled(distribution, *number, population.factors[random.Below(population.factors.size())]);
}

}  // namespace

absl::Status CheckPerturbation(const PopulationSpec& population, const SearchSpace& space) {
  const auto bad = [](auto&&... words) {
    return absl::InvalidArgumentError(absl::StrCat("\"population\": ", words...));
  };
  if (population.parameters.empty()) {
    return bad("\"parameters\" needs the names of those that may change during a trial, got none");
  }
  const double probability = population.resample_probability;
  if (!(probability >= 0 && probability <= 1)) {
    return bad("\"resample_probability\" needs a number from 0 to 1, got ", probability);
  }
  if (population.factors.empty()) return bad("\"factors\" needs a factor at least, got none");
  for (const double factor : population.factors) {
    if (!(factor > 0) || !std::isfinite(factor)) {
      return bad("\"factors\" needs factors > 0, got ", factor);
    }
  }
  for (auto name = population.parameters.begin(); name != population.parameters.end(); ++name) {
    if (std::find(population.parameters.begin(), name, *name) != name) {
      return bad("parameter \"", *name, "\" is named twice");
    }
  }
  for (const std::string& name : population.parameters) {
    const std::optional<std::size_t> found = space.Find(name);
    if (!found) return bad("parameter \"", name, "\" is not in the search space");
    const SearchSpace::Dimension& dimension = space.dimensions()[*found];
    if (dimension.condition) {
      return bad("parameter \"", name, "\" depends on \"",
                 space.dimensions()[dimension.condition->parent].name,
                 "\", and members that differ in it cannot take it over");
    }
    const auto* choice = std::get_if<Choice>(&dimension.distribution);
    if (choice != nullptr && choice->nested) {
      return bad("parameter \"", name,
                 "\" brings parameters of its own, and cannot change during a trial");
    }
  }
  return absl::OkStatus();
}

Parameters Perturb(const PopulationSpec& population, const SearchSpace& space,
                   Parameters parameters, Random& random) {
  for (const std::string& name : population.parameters) {
    const std::optional<std::size_t> dimension = space.Find(name);
    ESPALIER_CHECK(dimension.has_value(), "what is explored is of the space");
    const auto given = std::find_if(parameters.begin(), parameters.end(),
                                    [&name](const Parameter& p) { return p.name == name; });
    ESPALIER_CHECK(given != parameters.end(), "a member has all that is explored");
    given->value =
        Explored(population, space.dimensions()[*dimension].distribution, given->value, random);
  }
  return parameters;
}

}  // namespace espalier
