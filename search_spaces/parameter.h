#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"

namespace espalier {

using ParameterValue = std::variant<bool, std::int64_t, double, std::string>;

struct Parameter {
  std::string name;
  ParameterValue value;

  friend bool operator==(const Parameter&, const Parameter&) = default;
};

// The parameters of one trial, in the order of its search space.
using Parameters = std::vector<Parameter>;

// Null if there is no parameter of that name.
const ParameterValue* Find(const Parameters& parameters, std::string_view name);

// The value as a number; nothing for a flag or a text.
std::optional<double> NumberOf(const ParameterValue& value);

// True for equal values; 16 and 16.0 are equal, true and 1 are not.
bool SameValue(const ParameterValue& a, const ParameterValue& b);

// JSON that keeps the type and every bit: 5 stays an integer, 5.0 a floating-point number.
// Requires finite numbers, as JSON has no others.
std::string ToJson(const ParameterValue& value);
std::string ToJson(const Parameters& parameters);  // one flat object

absl::StatusOr<ParameterValue> ParameterValueFromJson(std::string_view json);
// Takes nested choices as NNI writes them, too: {"n": {"_name": "A", "p": 0.3}} gives n = "A" and
// n/A/p = 0.3. The inverse needs to know the choices: SearchSpace::NestedJson.
// The limits on what users send hold for the flat form too, so that this can read its ToJson.
absl::StatusOr<Parameters> ParametersFromJson(std::string_view json);
// The same for programs that take any JSON: what is no parameter value (null, a list, an object
// that is no nested choice) is its JSON text.
absl::StatusOr<Parameters> ParametersOrTextsFromJson(std::string_view json);
// The inverse of ToJson for what Espalier has kept, which may have any size.
absl::StatusOr<Parameters> ParametersFromRecord(std::string_view json);

// For tables: four significant digits, strings without quotes.
std::string ToDisplay(const ParameterValue& value);

}  // namespace espalier
