#include <set>

#include "absl/strings/str_cat.h"
#include "search_spaces/json_text.h"
#include "search_spaces/parameter.h"

namespace espalier {

using search_spaces_json::Author;
using search_spaces_json::FromParameterValue;
using search_spaces_json::Json;
using search_spaces_json::kMaxKeysInObject;
using search_spaces_json::kMaxTextBytes;
using search_spaces_json::ToParameterValue;

namespace {

absl::Status Bad(const std::string& name, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("parameter \"", name, "\" ", what));
}

enum class OtherValues { kRefused, kTexts };

// Gathers what an object nests as flat parameters.
class Flattened {
 public:
  Flattened(Author author, OtherValues others) : author_(author), others_(others) {}

  // The members of an object, under names that begin with `prefix`.
  absl::Status Add(const Json& object, const std::string& prefix) {
    for (const auto& [key, element] : object.items()) {
      if (!prefix.empty() && key == "_name") continue;
      const std::string name = prefix + key;
      if (!element.is_object()) {
        absl::StatusOr<ParameterValue> value = ToParameterValue(element);
        if (!value.ok() && others_ == OtherValues::kTexts) value = Text(element);
        if (!value.ok()) {
          return absl::InvalidArgumentError(
              absl::StrCat("parameter \"", name, "\": ", value.status().message()));
        }
        ESPALIER_RETURN_IF_ERROR(Keep({name, *std::move(value)}));
        continue;
      }
      const auto option = element.find("_name");
      if (option == element.end() || !option->is_string()) {
        if (others_ == OtherValues::kTexts) {
          ESPALIER_RETURN_IF_ERROR(Keep({name, Text(element)}));
          continue;
        }
        return Bad(name, absl::StrCat("is an object, so it needs a text \"_name\", the option of a "
                                      "nested choice, got ",
                                      search_spaces_json::Quote(element)));
      }
      const std::string chosen = option->get<std::string>();
      ESPALIER_RETURN_IF_ERROR(Keep({name, chosen}));
      ESPALIER_RETURN_IF_ERROR(Add(element, absl::StrCat(name, "/", chosen, "/")));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Parameters> Take() && {
    std::set<std::string_view> names;
    for (const Parameter& parameter : parameters_) {
      if (!names.insert(parameter.name).second) return Bad(parameter.name, "is given twice");
    }
    return std::move(parameters_);
  }

 private:
  static ParameterValue Text(const Json& value) { return value.dump(-1, ' ', true); }

  // Names repeat those above them, so that a short text may have a very long flat form: it is given
  // up as soon as it is too long.
  absl::Status Keep(Parameter parameter) {
    if (author_ == Author::kUser) {
      constexpr std::size_t kPunctuation = 2;  // ":" and ","
      bytes_ += espalier::ToJson(ParameterValue(parameter.name)).size() +
                espalier::ToJson(parameter.value).size() + kPunctuation;
      if (bytes_ > kMaxTextBytes) {
        return absl::InvalidArgumentError(
            absl::StrCat("parameters: the flat form has more than ", kMaxTextBytes,
                         " bytes of JSON, as the name of a nested parameter contains the names and "
                         "options above it; shorten those"));
      }
      if (parameters_.size() == kMaxKeysInObject) {
        return absl::InvalidArgumentError(
            absl::StrCat("parameters: more than ", kMaxKeysInObject, ", nested ones included"));
      }
    }
    parameters_.push_back(std::move(parameter));
    return absl::OkStatus();
  }

  const Author author_;
  const OtherValues others_;
  Parameters parameters_;
  std::size_t bytes_ = 1;  // of their JSON: its braces, and no comma after the last one
};

absl::StatusOr<Parameters> ReadParameters(std::string_view json, Author author,
                                          OtherValues others = OtherValues::kRefused) {
  ESPALIER_ASSIGN_OR_RETURN(const Json parsed,
                            search_spaces_json::Parse("parameters", json, author));
  if (!parsed.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat("parameters: expected a JSON object, got ",
                                                   search_spaces_json::Quote(parsed)));
  }
  Flattened flattened(author, others);
  ESPALIER_RETURN_IF_ERROR(flattened.Add(parsed, ""));
  return std::move(flattened).Take();
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
  return ReadParameters(json, Author::kUser);
}

absl::StatusOr<Parameters> ParametersOrTextsFromJson(std::string_view json) {
  return ReadParameters(json, Author::kUser, OtherValues::kTexts);
}

absl::StatusOr<Parameters> ParametersFromRecord(std::string_view json) {
  return ReadParameters(json, Author::kEspalier);
}

}  // namespace espalier
