#include "search_spaces/parameter.h"

#include <cstdio>

namespace espalier {

const ParameterValue* Find(const Parameters& parameters, std::string_view name) {
  for (const Parameter& parameter : parameters) {
    if (parameter.name == name) return &parameter.value;
  }
  return nullptr;
}

std::optional<double> NumberOf(const ParameterValue& value) {
  if (const auto* i = std::get_if<std::int64_t>(&value)) return static_cast<double>(*i);
  if (const auto* d = std::get_if<double>(&value)) return *d;
  return std::nullopt;
}

bool SameValue(const ParameterValue& a, const ParameterValue& b) {
  if (a.index() == b.index()) return a == b;
  const std::optional<double> x = NumberOf(a);
  const std::optional<double> y = NumberOf(b);
  return x && y && *x == *y;
}

std::string ToDisplay(const ParameterValue& value) {
  if (const auto* b = std::get_if<bool>(&value)) return *b ? "true" : "false";
  if (const auto* i = std::get_if<std::int64_t>(&value)) return std::to_string(*i);
  if (const auto* s = std::get_if<std::string>(&value)) return *s;
  char text[32];
  std::snprintf(text, sizeof(text), "%.4g", std::get<double>(value));
  return text;
}

}  // namespace espalier
