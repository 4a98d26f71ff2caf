#include "tuner/study_file/point_keys.h"

#include <array>
#include <string>
#include <string_view>
#include <utility>

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

// In words; a study file may give any number instead.
struct ConfidenceWord {
  std::string_view word;
  double confidence;
};
constexpr ConfidenceWord kConfidences[] = {{"low", 0.25}, {"medium", 0.5}, {"high", 0.9}};

absl::Status ReadConfidence(const KeyValue& value, double& confidence) {
  if (value.json().is_number()) {
    return value.Range("a confidence", kLeastConfidence, kMostConfidence, confidence);
  }
  for (const auto& [word, means] : kConfidences) {
    if (value.Word() != word) continue;
    confidence = means;
    return absl::OkStatus();
  }
  return value.Needs(R"("low", "medium", "high" or a number from 0.01 to 0.99)");
}

absl::StatusOr<Belief> ReadBelief(const KeyValue& value, const std::string& name) {
  const Json* expected = &value.json();
  Belief belief;
  if (expected->is_object()) {
    ESPALIER_RETURN_IF_ERROR(
        value.CheckKeys(std::array<std::string_view, 2>{"value", "confidence"}));
    if (!expected->contains("value")) {
      return value.Needs(R"(a value, or {"value": ..., "confidence": ...})");
    }
    if (expected->contains("confidence")) {
      const std::string place = absl::StrCat(std::string(value.key()), ".confidence");
      ESPALIER_RETURN_IF_ERROR(ReadConfidence(
          KeyValue(value.file(), place, expected->at("confidence")), belief.confidence));
    }
    expected = &expected->at("value");
  }
  absl::StatusOr<ParameterValue> read = ParameterValueFromJson(expected->dump());
  if (!read.ok()) return value.Bad(std::string(read.status().message()));
  belief.name = name;
  belief.value = *std::move(read);
  return belief;
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

absl::Status ReadPrior(const KeyValue& value, StudySpec& spec) {
  if (!value.json().is_object()) return value.Needs(R"(an object like {"lr": 0.001})");
  spec.prior.clear();
  for (const auto& [name, json] : value.json().items()) {
    const std::string place = absl::StrCat("prior.", name);
    ESPALIER_ASSIGN_OR_RETURN(Belief belief, ReadBelief(KeyValue(value.file(), place, json), name));
    spec.prior.push_back(std::move(belief));
  }
  return absl::OkStatus();
}

Json PointsJson(const StudySpec& spec) {
  if (spec.points.empty()) return {};
  Json points = Json::array();
  for (const Parameters& point : spec.points) points.push_back(JsonOf(point));
  return points;
}

Json FixedJson(const StudySpec& spec) { return spec.fixed.empty() ? Json() : JsonOf(spec.fixed); }

Json PriorJson(const StudySpec& spec) {
  if (spec.prior.empty()) return {};
  Json prior = Json::object();
  for (const auto& [name, value, confidence] : spec.prior) {
    Json expected = ParseJson<Json>(ToJson(value), kMaxRecordDepth);
    if (confidence != Belief{}.confidence) {
      expected = Json{{"value", expected}, {"confidence", confidence}};
    }
    prior[name] = std::move(expected);
  }
  return prior;
}

}  // namespace espalier
