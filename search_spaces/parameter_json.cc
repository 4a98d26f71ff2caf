#include "absl/strings/str_cat.h"
#include "search_spaces/json_text.h"
#include "search_spaces/parameter.h"

namespace espalier {

using search_spaces_json::FromParameterValue;
using search_spaces_json::Json;
using search_spaces_json::ToParameterValue;

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
  for (const auto& [name, element] : parsed.items()) {
    absl::StatusOr<ParameterValue> value = ToParameterValue(element);
    if (!value.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("parameter \"", name, "\": ", value.status().message()));
    }
    parameters.push_back({name, *std::move(value)});
  }
  return parameters;
}

}  // namespace espalier
