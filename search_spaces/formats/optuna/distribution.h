#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "search_spaces/distribution.h"

namespace espalier {

// A distribution in Optuna's JSON format, as its storages keep it:
// {"name": "FloatDistribution", "attributes": {"step": null, "low": 0.0, "high": 1.0, "log":
// false}}. The deprecated names (UniformDistribution, ...) are understood too. A value of it is
// stored as one double: a number as itself, a choice as its index.
struct OptunaDistribution {
  enum class Type { kFloat, kInt, kCategorical };

  std::string name;  // Optuna's class
  Type type = Type::kFloat;
  double low = 0;
  double high = 0;
  bool log = false;
  std::optional<double> step;
  std::vector<std::string> choices;  // JSON, as Python writes it: NaN and Infinity are among it
  // Equal for two distributions that Optuna lets a study use for one parameter: the same class, the
  // same scale, the same choices by Python's comparison (1, 1.0 and true are equal).
  std::string kind;
};

// InvalidArgument says what is wrong with the text.
absl::StatusOr<OptunaDistribution> ParseOptunaDistribution(std::string_view json);

// What a program got for the stored number. A choice that is neither boolean, number nor string is
// its JSON text; an index that no choice has is the number itself.
ParameterValue OptunaValue(const OptunaDistribution& distribution, double stored);

// The other way, for spaces of our own. What Optuna has no bounds for is given bounds that the
// value is within: six standard deviations.
std::string ToOptunaJson(const Distribution& distribution, const ParameterValue& value);
double ToOptunaStored(const Distribution& distribution, const ParameterValue& value);

// Whether the text is JSON as Python writes it: NaN, Infinity and -Infinity are numbers, lone
// surrogates may be escaped. The error names the offset.
absl::Status CheckPythonJson(std::string_view text);

}  // namespace espalier
