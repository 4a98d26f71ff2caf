#include "trial_runner/control/parameters.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/json/parse_json.h"
#include "base/nested_choice.h"
#include "nlohmann/json.hpp"

namespace espalier {
namespace {

constexpr double kMaxExactInteger = 9007199254740992.0;  // 2^53

Parameters::Value ValueOf(const nlohmann::json& json) {
  if (json.is_null()) return std::monostate();
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  return json.dump();
}

std::string Shown(const Parameters::Value& value) {
  if (std::holds_alternative<std::monostate>(value)) return "null";
  if (const auto* text = std::get_if<std::string>(&value)) return absl::StrCat("\"", *text, "\"");
  if (const auto* truth = std::get_if<bool>(&value)) return *truth ? "true" : "false";
  if (const auto* count = std::get_if<std::int64_t>(&value)) return absl::StrCat(*count);
  return absl::StrCat(std::get<double>(value));
}

absl::Status WrongType(const std::string& name, const Parameters::Value& value,
                       const char* wanted) {
  return absl::InvalidArgumentError(
      absl::StrCat("parameter \"", name, "\" is ", Shown(value), ": the program wants ", wanted));
}

}  // namespace

absl::StatusOr<Parameters> Parameters::FromJson(std::string_view json, std::string_view origin) {
  const std::string where(origin);
  const nlohmann::json parsed = ParseJson(json);
  if (!parsed.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat("parameters ", where, ": not a JSON object like {\"lr\": 0.1}"));
  }
  Parameters parameters;
  ForEachParameter(parsed, [&](const std::string& name, const nlohmann::json& value) {
    parameters.values_[name] = ValueOf(value);
  });
  return parameters;
}

absl::Status Parameters::Set(std::string_view assignment) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--set \"", std::string(assignment), "\": want name=value, like lr=0.1"));
  }
  const std::string text(assignment.substr(equals + 1));
  const nlohmann::json parsed = ParseJson(text);
  values_[std::string(assignment.substr(0, equals))] =
      parsed.is_discarded() ? Value(text) : ValueOf(parsed);
  return absl::OkStatus();
}

const Parameters::Value* Parameters::Find(const std::string& name) const {
  asked_.insert(name);
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
}

absl::StatusOr<double> Parameters::Get(const std::string& name, double otherwise) const {
  const Value* value = Find(name);
  if (value == nullptr) return otherwise;
  if (const auto* real = std::get_if<double>(value)) return *real;
  if (const auto* count = std::get_if<std::int64_t>(value)) return static_cast<double>(*count);
  return WrongType(name, *value, "a number");
}

absl::StatusOr<std::int64_t> Parameters::Get(const std::string& name,
                                             std::int64_t otherwise) const {
  const Value* value = Find(name);
  if (value == nullptr) return otherwise;
  if (const auto* count = std::get_if<std::int64_t>(value)) return *count;
  if (const auto* real = std::get_if<double>(value);
      real != nullptr && std::nearbyint(*real) == *real && std::abs(*real) <= kMaxExactInteger) {
    return static_cast<std::int64_t>(*real);
  }
  return WrongType(name, *value, "an integer");
}

absl::StatusOr<bool> Parameters::Get(const std::string& name, bool otherwise) const {
  const Value* value = Find(name);
  if (value == nullptr) return otherwise;
  if (const auto* truth = std::get_if<bool>(value)) return *truth;
  return WrongType(name, *value, "true or false");
}

absl::StatusOr<std::string> Parameters::Get(const std::string& name,
                                            const std::string& otherwise) const {
  const Value* value = Find(name);
  if (value == nullptr) return otherwise;
  if (const auto* text = std::get_if<std::string>(value)) return *text;
  return WrongType(name, *value, "text");
}

std::string Parameters::Json() const {
  nlohmann::json object = nlohmann::json::object();
  for (const auto& [name, value] : values_) {
    nlohmann::json& member = object[name];
    if (const auto* truth = std::get_if<bool>(&value)) member = *truth;
    if (const auto* count = std::get_if<std::int64_t>(&value)) member = *count;
    if (const auto* real = std::get_if<double>(&value)) member = *real;
    if (const auto* text = std::get_if<std::string>(&value)) member = *text;
  }
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::vector<std::string> Parameters::Unused() const {
  std::vector<std::string> unused;
  for (const auto& [name, value] : values_) {
    if (!asked_.contains(name)) unused.push_back(name);
  }
  return unused;
}

}  // namespace espalier
