#include "search_spaces/formats/optuna/constraints.h"

#include <rapidjson/document.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>

#include "base/json/python_json.h"

namespace espalier {
namespace {

constexpr std::string_view kList = "constraints";
constexpr std::string_view kNamed = "constraints:";

double NumberOrNaN(const rapidjson::Value& value) {
  return value.IsNumber() ? value.GetDouble() : std::numeric_limits<double>::quiet_NaN();
}

// Where the list has it that a name is of; nullopt where it has none.
std::optional<std::size_t> PlaceOf(std::string_view name, std::size_t size) {
  std::size_t place = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), place);
  if (error != std::errc() || end != name.data() + name.size() || place >= size)
    return std::nullopt;
  return std::to_string(place) == name ? std::optional(place) : std::nullopt;
}

// As Python's JSON has it, exactly.
std::string PythonNumber(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number < 0 ? "-Infinity" : "Infinity";
  std::array<char, 32> digits;  // of the longest double: 24
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  return {digits.data(), end};
}

std::vector<double> ListIn(const std::string& text) {
  rapidjson::Document json;
  if (ParsePythonJson(text, json).IsError()) return {std::numeric_limits<double>::quiet_NaN()};
  if (json.IsNull()) return {};  // its function has failed
  if (!json.IsArray()) return {std::numeric_limits<double>::quiet_NaN()};
  std::vector<double> numbers;
  for (const rapidjson::Value& value : json.GetArray()) numbers.push_back(NumberOrNaN(value));
  return numbers;
}

}  // namespace

bool IsConstraintKey(std::string_view key) { return key == kList || key.starts_with(kNamed); }

std::vector<double> ConstraintsIn(const std::map<std::string, std::string>& system_attributes) {
  std::vector<double> constraints;
  auto at = system_attributes.lower_bound(std::string(kList));
  if (at != system_attributes.end() && at->first == kList) constraints = ListIn(at->second);
  const std::size_t listed = constraints.size();
  for (at = system_attributes.lower_bound(std::string(kNamed));
       at != system_attributes.end() && at->first.starts_with(kNamed); ++at) {
    rapidjson::Document json;
    const bool good = !ParsePythonJson(at->second, json).IsError();
    const double number = good ? NumberOrNaN(json) : std::numeric_limits<double>::quiet_NaN();
    if (const auto place = PlaceOf(std::string_view(at->first).substr(kNamed.size()), listed)) {
      constraints[*place] = number;
    } else {
      constraints.push_back(number);
    }
  }
  return constraints;
}

void AddConstraints(const std::vector<double>& constraints,
                    std::map<std::string, std::string>& system_attributes) {
  const auto is_of_that = [](const auto& attribute) { return IsConstraintKey(attribute.first); };
  if (constraints.empty() || std::ranges::any_of(system_attributes, is_of_that)) return;
  std::string list = "[";
  for (const double constraint : constraints) {
    list += (list.size() > 1 ? ", " : "") + PythonNumber(constraint);
  }
  system_attributes.emplace(kList, list + "]");
}

bool KeepsTo(const std::vector<double>& constraints) {
  return std::all_of(constraints.begin(), constraints.end(), [](double x) { return x <= 0; });
}

}  // namespace espalier
