#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "search_spaces/distribution.h"

namespace espalier {

// A distribution in Optuna's JSON format, as its storages keep it: {"name": "FloatDistribution",
// "attributes": {"step": null, "low": 0.0, "high": 1.0, "log": false}}. The deprecated names
// (UniformDistribution, ...) are understood too. A value is stored as one double: a number as
// itself, a choice as its index.
struct OptunaDistribution {
  enum class Type { kFloat, kInt, kCategorical };

  std::string name;  // Optuna's class
  Type type = Type::kFloat;
  double low = 0;
  double high = 0;
  bool log = false;
  std::optional<double> step;
  // JSON as Python writes it, which includes NaN and Infinity. Lone surrogates are U+FFFD.
  std::vector<std::string> choices;
  // Two distributions that Optuna lets a study use for one parameter have equal kinds: the same
  // class, the same scale, the same choices by Python's comparison (1, 1.0 and true are equal).
  std::string kind;
};

// InvalidArgument says what is wrong with the text.
absl::StatusOr<OptunaDistribution> ParseOptunaDistribution(std::string_view json);

// The value that a program got for the stored number. A choice that is neither boolean, number nor
// string is returned as its JSON text; an index that no choice has, as the number itself.
ParameterValue OptunaValue(const OptunaDistribution& distribution, double stored);

// The inverse, for spaces of our own. A kind that has no bounds is given some for Optuna, which the
// value is within: six standard deviations.
std::string ToOptunaJson(const Distribution& distribution, const ParameterValue& value);
double ToOptunaStored(const Distribution& distribution, const ParameterValue& value);

// Whether the text is JSON as Python writes it: NaN, Infinity and -Infinity are numbers, integers
// have any number of digits, lone surrogates may be escaped. The error names the offset.
absl::Status CheckPythonJson(std::string_view text);

}  // namespace espalier
