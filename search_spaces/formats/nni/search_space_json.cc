#include <algorithm>
#include <utility>

#include "search_spaces/formats/nni/distribution_json.h"
#include "search_spaces/formats/nni/search_space_reading.h"
#include "search_spaces/json_text.h"
#include "search_spaces/search_space.h"

namespace espalier {
namespace {

using search_spaces_json::Json;
using Condition = SearchSpace::Condition;

bool IsNested(const Distribution& distribution) {
  const auto* choice = std::get_if<Choice>(&distribution);
  return choice != nullptr && choice->nested;
}

// The dimensions under one condition, in NNI's format.
void WriteDimensions(const SearchSpace& space, const std::optional<Condition>& condition,
                     Json& object) {
  const auto& dimensions = space.dimensions();
  for (std::size_t i = condition ? condition->parent : 0; i < dimensions.size(); ++i) {
    if (dimensions[i].condition != condition) continue;
    const Distribution& distribution = dimensions[i].distribution;
    Json values = search_spaces_json::ValuesOf(distribution);
    if (IsNested(distribution)) {
      for (std::size_t option = 0; option < values.size(); ++option) {
        Json nested = Json::object({{"_name", std::move(values[option])}});
        WriteDimensions(space, Condition{i, option}, nested);
        values[option] = std::move(nested);
      }
    }
    object[std::string(space.OwnName(i))] = Json::object(
        {{"_type", std::string(TypeName(distribution))}, {"_value", std::move(values)}});
  }
}

// The parameters under one condition, as a trial gets them.
void WriteParameters(const SearchSpace& space, const Parameters& parameters,
                     const std::optional<Condition>& condition, Json& object) {
  const auto& dimensions = space.dimensions();
  for (std::size_t i = condition ? condition->parent : 0; i < dimensions.size(); ++i) {
    if (dimensions[i].condition != condition) continue;
    const ParameterValue* value = Find(parameters, dimensions[i].name);
    if (value == nullptr) continue;
    Json json = search_spaces_json::FromParameterValue(*value);
    const Distribution& distribution = dimensions[i].distribution;
    if (const auto option = IndexOf(distribution, *value); option && IsNested(distribution)) {
      Json nested = Json::object({{"_name", std::move(json)}});
      WriteParameters(space, parameters, Condition{i, static_cast<std::size_t>(*option)}, nested);
      json = std::move(nested);
    }
    object[std::string(space.OwnName(i))] = std::move(json);
  }
}

}  // namespace

absl::StatusOr<SearchSpace> SearchSpace::FromJson(std::string_view json) {
  SearchSpaceReading reading = ReadSearchSpace(json);
  ESPALIER_RETURN_IF_ERROR(reading.status());
  return std::move(reading.space);
}

std::string SearchSpace::ToJson() const {
  Json object = Json::object();
  WriteDimensions(*this, std::nullopt, object);
  return object.dump(2, ' ', false, Json::error_handler_t::replace);
}

std::string SearchSpace::NestedJson(const Parameters& parameters) const {
  Json object = Json::object();
  WriteParameters(*this, parameters, std::nullopt, object);
  for (const Parameter& parameter : parameters) {
    if (!Find(parameter.name)) {
      object[parameter.name] = search_spaces_json::FromParameterValue(parameter.value);
    }
  }
  return object.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace espalier
