#include <set>

#include "absl/strings/str_cat.h"
#include "search_spaces/json_text.h"
#include "search_spaces/parameter.h"

namespace espalier {

using search_spaces_json::FromParameterValue;
using search_spaces_json::Json;
using search_spaces_json::ToParameterValue;

namespace {

absl::Status Bad(const std::string& name, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("parameter \"", name, "\" ", what));
}

// The members of an object, under names that begin with `prefix`.
absl::Status AddFlat(const Json& object, const std::string& prefix, Parameters& parameters) {
  for (const auto& [key, element] : object.items()) {
    if (!prefix.empty() && key == "_name") continue;
    const std::string name = prefix + key;
    if (!element.is_object()) {
      absl::StatusOr<ParameterValue> value = ToParameterValue(element);
      if (!value.ok()) {
        return absl::InvalidArgumentError(
            absl::StrCat("parameter \"", name, "\": ", value.status().message()));
      }
      parameters.push_back({name, *std::move(value)});
      continue;
    }
    const auto option = element.find("_name");
    if (option == element.end() || !option->is_string()) {
      return Bad(name, absl::StrCat("is an object, so it needs a text \"_name\", the option of a "
                                    "nested choice, got ",
                                    search_spaces_json::Quote(element)));
    }
    const std::string chosen = option->get<std::string>();
    parameters.push_back({name, chosen});
    ESPALIER_RETURN_IF_ERROR(AddFlat(element, absl::StrCat(name, "/", chosen, "/"), parameters));
  }
  return absl::OkStatus();
}

}  // namespace

std::string ToJson(const ParameterValue& value) {
  return FromParameterValue(value).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string ToJson(const Parameters& parameters) {
  Json object = Json::object();
  for (const Parameter& parameter : parameters) {
    object[parameter.name] = FromParameterValue(parameter.value);
  }
  return object.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<ParameterValue> ParameterValueFromJson(std::string_view json) {
  ESPALIER_ASSIGN_OR_RETURN(const Json parsed, search_spaces_json::Parse("parameter value", json));
  absl::StatusOr<ParameterValue> value = ToParameterValue(parsed);
  if (value.ok()) return value;
  return absl::InvalidArgumentError(absl::StrCat("parameter value: ", value.status().message()));
}

absl::StatusOr<Parameters> ParametersFromJson(std::string_view json) {
  ESPALIER_ASSIGN_OR_RETURN(const Json parsed, search_spaces_json::Parse("parameters", json));
  if (!parsed.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat("parameters: expected a JSON object, got ",
                                                   search_spaces_json::Quote(parsed)));
  }
  Parameters parameters;
  ESPALIER_RETURN_IF_ERROR(AddFlat(parsed, "", parameters));
  std::set<std::string_view> names;
  for (const Parameter& parameter : parameters) {
    if (!names.insert(parameter.name).second) return Bad(parameter.name, "is given twice");
  }
  return parameters;
}

}  // namespace espalier
