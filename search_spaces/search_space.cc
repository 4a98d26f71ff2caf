#include "search_spaces/search_space.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

namespace espalier {
namespace {

absl::Status CheckName(const std::string& name) {
  if (name.empty()) {
    return absl::InvalidArgumentError(
        "search space \"\": a parameter needs a name that is not empty");
  }
  if (name.size() > kMaxParameterNameBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("search space \"", name.substr(0, 32), "...\": names have at most ",
                     kMaxParameterNameBytes, " bytes, got ", name.size()));
  }
  return absl::OkStatus();
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
  std::set<std::string_view> names;
  for (const auto& [name, distribution] : dimensions) {
    ESPALIER_RETURN_IF_ERROR(CheckName(name));
    ESPALIER_RETURN_IF_ERROR(CheckDistribution(name, distribution));
    if (!names.insert(name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("search space \"", name, "\": this name appears twice"));
    }
  }
  return SearchSpace(std::move(dimensions));
}

Parameters SearchSpace::Sample(Random& random) const {
  Parameters parameters;
  parameters.reserve(dimensions_.size());
  for (const auto& [name, distribution] : dimensions_) {
    parameters.push_back({name, Draw(distribution, random)});
  }
  return parameters;
}

absl::Status SearchSpace::Validate(const Parameters& parameters) const {
  for (const auto& [name, distribution] : dimensions_) {
    const ParameterValue* value = Find(parameters, name);
    if (value == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("parameter \"", name, "\" is missing; it is ",
                                                     espalier::Describe(distribution)));
    }
    if (!Contains(distribution, *value)) {
      return absl::InvalidArgumentError(
          absl::StrCat("parameter \"", name, "\" is ", ToDisplay(*value),
                       ", outside its search space: ", espalier::Describe(distribution)));
    }
  }
  std::set<std::string_view> seen;
  for (const Parameter& parameter : parameters) {
    const bool known = std::any_of(dimensions_.begin(), dimensions_.end(),
                                   [&](const Dimension& d) { return d.name == parameter.name; });
    if (!known) {
      return absl::InvalidArgumentError(
          absl::StrCat("parameter \"", parameter.name, "\" is not in the search space"));
    }
    if (!seen.insert(parameter.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("parameter \"", parameter.name, "\" is given twice"));
    }
  }
  return absl::OkStatus();
}

std::optional<std::uint64_t> SearchSpace::Cardinality() const {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t product = 1;
  for (const Dimension& dimension : dimensions_) {
    const std::optional<std::uint64_t> count = espalier::Cardinality(dimension.distribution);
    if (!count) return std::nullopt;
    product = product > kMost / *count ? kMost : product * *count;
  }
  return product;
}

std::string SearchSpace::Describe() const {
  std::string text;
  for (const auto& [name, distribution] : dimensions_) {
    absl::StrAppend(&text, name, ": ", espalier::Describe(distribution), "\n");
  }
  return text;
}

}  // namespace espalier
