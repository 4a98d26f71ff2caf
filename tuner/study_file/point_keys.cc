#include "tuner/study_file/point_keys.h"

#include "absl/strings/str_cat.h"
#include "base/json/parse_json.h"

namespace espalier {

namespace {

using search_spaces_json::Json;

absl::StatusOr<Parameters> ReadParameters(const KeyValue& value) {
  if (!value.json().is_object()) return value.Needs(R"(an object like {"lr": 0.001})");
  absl::StatusOr<Parameters> parameters = ParametersFromJson(value.json().dump());
  if (!parameters.ok()) return value.Bad(std::string(parameters.status().message()));
  return parameters;
}

Json JsonOf(const Parameters& parameters) {
  return ParseJson<Json>(ToJson(parameters), kMaxRecordDepth);
}

}  // namespace

absl::Status ReadPoints(const KeyValue& value, StudySpec& spec) {
  const Json& json = value.json();
  if (!json.is_array()) return value.Needs(R"(a list like [{"lr": 0.001}])");
  if (json.size() > kMaxPoints) {
    return value.Bad(absl::StrCat("needs at most ", kMaxPoints, " points, got ", json.size()));
  }
  spec.points.clear();
  for (std::size_t i = 0; i < json.size(); ++i) {
    const std::string place = absl::StrCat("points[", i, "]");
    ESPALIER_ASSIGN_OR_RETURN(Parameters point,
                              ReadParameters(KeyValue(value.file(), place, json[i])));
    spec.points.push_back(std::move(point));
  }
  return absl::OkStatus();
}

absl::Status ReadFixed(const KeyValue& value, StudySpec& spec) {
  ESPALIER_ASSIGN_OR_RETURN(spec.fixed, ReadParameters(value));
  return absl::OkStatus();
}

Json PointsJson(const StudySpec& spec) {
  if (spec.points.empty()) return {};
  Json points = Json::array();
  for (const Parameters& point : spec.points) points.push_back(JsonOf(point));
  return points;
}

Json FixedJson(const StudySpec& spec) { return spec.fixed.empty() ? Json() : JsonOf(spec.fixed); }

}  // namespace espalier
