#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>

#include "absl/strings/str_cat.h"
#include "tuner/server/http/http_routes.h"

namespace espalier {

// Holds what a stream of events says to docs/openapi.json.
class DescribedEvents {
 public:
  using Json = nlohmann::json;

  // What an event, {"event", "id", "data"}, is not as the document says; empty: it is.
  static std::string Against(const Json& event) { return Against(event, Schema(), "event"); }

  // One for each kind.
  static const Json& Schema() { return Document().at("components").at("schemas").at("ViewEvent"); }

 private:
  static const Json& Document() {
    static const Json document = Json::parse(OpenApiText());
    return document;
  }

  static bool IsOf(const Json& value, const std::string& type) {
    if (type == "object") return value.is_object();
    if (type == "array") return value.is_array();
    if (type == "string") return value.is_string();
    if (type == "boolean") return value.is_boolean();
    if (type == "integer") return value.is_number_integer();
    if (type == "number") return value.is_number();
    return type == "null" && value.is_null();
  }

  static std::string Against(const Json& value, const Json& schema, const std::string& place) {
    for (const auto& [key, rule] : schema.items()) {
      std::string told = AgainstRule(value, key, rule, place);
      if (!told.empty()) return told;
    }
    if (!value.is_object() || !schema.contains("properties")) return "";
    for (const auto& [name, field] : value.items()) {
      if (!schema["properties"].contains(name)) return absl::StrCat(place, ".", name, " is new");
      std::string told = Against(field, schema["properties"][name], absl::StrCat(place, ".", name));
      if (!told.empty()) return told;
    }
    return "";
  }

  // A rule that it does not know is against it, too.
  static std::string AgainstRule(const Json& value, const std::string& key, const Json& rule,
                                 const std::string& place) {
    const std::string is_not = absl::StrCat(place, " is ", value.dump().substr(0, 200), ", not ");
    if (key == "description" || key == "properties") return "";
    if (key == "additionalProperties") return rule == false ? "" : "takes any property";
    if (key == "$ref") {
      return Against(value, Document().at(Json::json_pointer(rule.get<std::string>().substr(1))),
                     place);
    }
    if (key == "anyOf") {
      std::string all;
      for (const Json& one : rule) {
        const std::string told = Against(value, one, place);
        if (told.empty()) return "";
        absl::StrAppend(&all, told, "; ");
      }
      return all;
    }
    if (key == "type") {
      const Json types = rule.is_array() ? rule : Json::array({rule});
      const bool is_one =
          std::ranges::any_of(types, [&](const Json& type) { return IsOf(value, type); });
      return is_one ? "" : absl::StrCat(is_not, types.dump());
    }
    if (key == "enum") return std::ranges::count(rule, value) > 0 ? "" : is_not + rule.dump();
    if (key == "minimum") return value >= rule ? "" : is_not + rule.dump() + " or more";
    if (key == "pattern") {
      const std::regex pattern(rule.get<std::string>());
      return std::regex_match(value.get<std::string>(), pattern) ? "" : is_not + rule.dump();
    }
    if (key == "required") {
      for (const Json& name : rule) {
        if (!value.contains(name)) return absl::StrCat(place, " has no ", name.dump());
      }
      return "";
    }
    if (key == "items") {
      for (const Json& item : value) {
        std::string told = Against(item, rule, place + "[]");
        if (!told.empty()) return told;
      }
      return "";
    }
    return absl::StrCat(place, ": an unknown rule ", key);
  }
};

}  // namespace espalier
