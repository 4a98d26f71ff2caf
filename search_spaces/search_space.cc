#include "search_spaces/search_space.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/near_name.h"
#include "search_spaces/combinations.h"

namespace espalier {
namespace {

std::string Shown(const std::string& name) {
  constexpr std::size_t kShown = 32;
  return name.size() <= kMaxFlatNameBytes ? name : name.substr(0, kShown) + "...";
}

absl::Status Outside(const SearchSpace::Dimension& dimension, const ParameterValue& value) {
  return absl::InvalidArgumentError(
      absl::StrCat("parameter \"", dimension.name, "\" is ", ToDisplay(value),
                   ", outside its search space: ", espalier::Describe(dimension.distribution)));
}

}  // namespace

absl::StatusOr<SearchSpace> SearchSpace::Make(std::vector<Dimension> dimensions) {
  if (dimensions.empty()) {
    return absl::InvalidArgumentError(
        "search space is empty; it needs at least one parameter, for example "
        R"({"lr": {"_type": "loguniform", "_value": [1e-5, 1]}})");
  }
  if (dimensions.size() > kMaxParameters) {
    return absl::InvalidArgumentError(absl::StrCat("search space has ", dimensions.size(),
                                                   " parameters, at most ", kMaxParameters,
                                                   " are accepted"));
  }
  const std::vector<DimensionFlaw> flaws = FlawsOf(dimensions);
  if (flaws.empty()) return SearchSpace(std::move(dimensions));
  return absl::InvalidArgumentError(absl::StrCat("search space \"",
                                                 Shown(dimensions[flaws.front().dimension].name),
                                                 "\": ", flaws.front().what));
}

std::optional<std::size_t> SearchSpace::Find(std::string_view name) const {
  for (std::size_t i = 0; i < dimensions_.size(); ++i) {
    if (dimensions_[i].name == name) return i;
  }
  return std::nullopt;
}

bool SearchSpace::IsActive(std::size_t i, const Parameters& parameters) const {
  const std::optional<Condition>& condition = dimensions_[i].condition;
  if (!condition) return true;
  const auto& [name, distribution, _] = dimensions_[condition->parent];
  const ParameterValue* value = espalier::Find(parameters, name);
  return value != nullptr && *value == std::get<Choice>(distribution).options[condition->option] &&
         IsActive(condition->parent, parameters);
}

std::string_view SearchSpace::OwnName(std::size_t i) const {
  const std::string_view name = dimensions_[i].name;
  const std::optional<Condition>& condition = dimensions_[i].condition;
  if (!condition) return name;
  const Dimension& parent = dimensions_[condition->parent];
  const ParameterValue& option = std::get<Choice>(parent.distribution).options[condition->option];
  return name.substr(parent.name.size() + std::get<std::string>(option).size() + 2);
}

Parameters SearchSpace::Sample(Random& random) const {
  Parameters parameters;
  parameters.reserve(dimensions_.size());
  for (std::size_t i = 0; i < dimensions_.size(); ++i) {
    if (!IsActive(i, parameters)) continue;
    parameters.push_back({dimensions_[i].name, Draw(dimensions_[i].distribution, random)});
  }
  return parameters;
}

std::string SearchSpace::WhyInactive(std::size_t i, const Parameters& parameters) const {
  // Names the outermost of the choices it depends on that is not as it should be.
  std::string why;
  for (; dimensions_[i].condition; i = dimensions_[i].condition->parent) {
    const Condition& condition = *dimensions_[i].condition;
    const auto& [name, distribution, _] = dimensions_[condition.parent];
    const ParameterValue& option = std::get<Choice>(distribution).options[condition.option];
    const ParameterValue* value = espalier::Find(parameters, name);
    if (value != nullptr && *value == option) continue;
    why = absl::StrCat("belongs to option \"", ToDisplay(option), "\" of \"", name, "\", which is ",
                       value == nullptr ? "missing" : ToDisplay(*value));
  }
  return why;
}

absl::Status SearchSpace::ValidateSome(const Parameters& parameters) const {
  std::set<std::string_view> seen;
  for (const auto& [name, value] : parameters) {
    const std::optional<std::size_t> i = Find(name);
    if (!i) {
      std::vector<std::string_view> known;
      for (const Dimension& dimension : dimensions_) known.push_back(dimension.name);
      const std::string near(NearName(name, known));
      return absl::InvalidArgumentError(
          absl::StrCat("parameter \"", name, "\" is not in the search space",
                       near.empty() ? "" : absl::StrCat(", did you mean \"", near, "\"?")));
    }
    if (!Contains(dimensions_[*i].distribution, value)) return Outside(dimensions_[*i], value);
    if (!IsActive(*i, parameters)) {
      return absl::InvalidArgumentError(
          absl::StrCat("parameter \"", name, "\" ", WhyInactive(*i, parameters)));
    }
    if (!seen.insert(name).second) {
      return absl::InvalidArgumentError(absl::StrCat("parameter \"", name, "\" is given twice"));
    }
  }
  return absl::OkStatus();
}

absl::Status SearchSpace::Validate(const Parameters& parameters) const {
  ESPALIER_RETURN_IF_ERROR(ValidateSome(parameters));
  for (std::size_t i = 0; i < dimensions_.size(); ++i) {
    const auto& [name, distribution, condition] = dimensions_[i];
    if (espalier::Find(parameters, name) != nullptr || !IsActive(i, parameters)) continue;
    return absl::InvalidArgumentError(absl::StrCat("parameter \"", name, "\" is missing; it is ",
                                                   espalier::Describe(distribution)));
  }
  return absl::OkStatus();
}

std::optional<std::uint64_t> SearchSpace::Cardinality() const {
  std::vector<std::uint64_t> counts;
  for (const Dimension& dimension : dimensions_) {
    const std::optional<std::uint64_t> count = espalier::Cardinality(dimension.distribution);
    if (!count) return std::nullopt;
    counts.push_back(*count);
  }
  return Combinations(*this, std::move(counts)).count();
}

std::string SearchSpace::Describe() const {
  std::string text;
  for (const Dimension& dimension : dimensions_) {
    absl::StrAppend(&text, dimension.name, ": ", espalier::Describe(dimension.distribution), "\n");
  }
  return text;
}

}  // namespace espalier
