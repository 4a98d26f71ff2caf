#include "tuner/study_file/metric_key.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/patterns/output_pattern.h"
#include "tuner/core/state/refusals.h"
#include "tuner/core/state/study_facts.h"
#include "tuner/study_file/words.h"

namespace espalier {

namespace {

using search_spaces_json::Json;
using search_spaces_json::Quote;

constexpr std::size_t kMostMetrics = 8;

// Of which a metric has one at most.
constexpr std::array<const char*, 3> kSources = {"from_output", "from_file", "from_tensorboard"};

constexpr std::array<std::string_view, 6> kKeysOfMetric = {
    "name", "direction", "step", "from_output", "from_file", "from_tensorboard"};

absl::Status ReadPatterns(const KeyValue& metric, const KeyValue& value, StudySpec& spec) {
  static_assert(kMaxOutputStep == kMaxStep);
  const Json& json = metric.json();
  ESPALIER_RETURN_IF_ERROR(value.Text(kMaxPattern_bytes, spec.from_output.value));
  if (json.contains("step")) {
    const KeyValue step(metric.file(), "metric.step", json["step"]);
    ESPALIER_RETURN_IF_ERROR(step.Text(kMaxPattern_bytes, spec.from_output.step));
  }
  return absl::OkStatus();
}

// A text below `of`, which may be missing where `result` is not empty.
absl::Status ReadText(const KeyValue& of, const char* name, std::size_t most, std::string& result) {
  const std::string key = absl::StrCat("metric.", name);
  const Json& json = of.json();
  const std::string last = key.substr(key.rfind('.') + 1);
  if (!json.contains(last)) {
    return result.empty() ? of.Bad(absl::StrCat("needs \"", last, "\", got ", Quote(json)))
                          : absl::OkStatus();
  }
  const KeyValue text(of.file(), key, json[last]);
  ESPALIER_RETURN_IF_ERROR(text.Text(most, result));
  if (result.empty() || HasNul(result)) return text.Needs("a text without a zero byte");
  return absl::OkStatus();
}

absl::Status ReadFile(const KeyValue& value, MetricFiles& files) {
  constexpr std::array<std::string_view, 3> kKnown = {"path", "value", "step"};
  if (!value.json().is_object()) {
    return value.Needs(R"({"path": ..., "value": ...}: a file of JSON lines, and a key in them)");
  }
  ESPALIER_RETURN_IF_ERROR(value.CheckKeys(kKnown));
  ESPALIER_RETURN_IF_ERROR(ReadText(value, "from_file.path", kMaxMetricPath_bytes, files.path));
  ESPALIER_RETURN_IF_ERROR(ReadText(value, "from_file.value", kMaxMetricKey_bytes, files.value));
  if (!value.json().contains("step")) return absl::OkStatus();
  return ReadText(value, "from_file.step", kMaxMetricKey_bytes, files.step);
}

absl::Status ReadTensorBoard(const KeyValue& value, MetricFiles& files) {
  constexpr std::array<std::string_view, 2> kKnown = {"folder", "tag"};
  if (!value.json().is_object()) {
    return value.Needs(R"({"tag": ...}, and the "folder" where the files of events are)");
  }
  ESPALIER_RETURN_IF_ERROR(value.CheckKeys(kKnown));
  files.path = ".";  // the trial's own
  ESPALIER_RETURN_IF_ERROR(
      ReadText(value, "from_tensorboard.folder", kMaxMetricPath_bytes, files.path));
  return ReadText(value, "from_tensorboard.tag", kMaxMetricKey_bytes, files.tag);
}

absl::Status ReadSource(const KeyValue& metric, StudySpec& spec) {
  const Json& json = metric.json();
  const char* source = nullptr;
  for (const char* each : kSources) {
    if (!json.contains(each)) continue;
    if (source != nullptr) {
      return metric.Bad(
          absl::StrCat("has values from one place, got \"", source, "\" and \"", each, "\""));
    }
    source = each;
  }
  if (json.contains("step") && (source == nullptr || source != kSources[0])) {
    return KeyValue(metric.file(), "metric.step", json["step"])
        .Bad("is for \"from_output\", which is missing");
  }
  if (source == nullptr) return absl::OkStatus();
  const std::string key = absl::StrCat("metric.", source);
  const KeyValue value(metric.file(), key, json[source]);
  if (metric.file().ByClients()) {
    return value.Bad("is for trials that the pool runs; with \"ask_and_tell\" clients tell values");
  }
  if (source == kSources[0]) return ReadPatterns(metric, value, spec);
  if (source == kSources[1]) return ReadFile(value, spec.from_files);
  return ReadTensorBoard(value, spec.from_files);
}

// One of several metrics: a name, or a name with a direction. The first also says where values are
// found, if programs do not report them.
absl::Status ReadOneOfSeveral(const KeyValue& value, bool first, std::string& name,
                              Direction& direction) {
  const Json& json = value.json();
  if (json.is_string()) return value.Text(kMaxNameBytes, name);
  if (!json.is_object() || !json.contains("name")) {
    return value.Needs(
        R"(metrics in the list as names, or {"name": ..., "direction": "minimize" or "maximize"})");
  }
  const std::span<const std::string_view> known(kKeysOfMetric);
  ESPALIER_RETURN_IF_ERROR(value.CheckKeys(first ? known : known.first(2)));
  ESPALIER_RETURN_IF_ERROR(
      KeyValue(value.file(), "metric.name", json["name"]).Text(kMaxNameBytes, name));
  if (!json.contains("direction")) return absl::OkStatus();
  const KeyValue word(value.file(), "metric.direction", json["direction"]);
  const std::optional<Direction> told = DirectionOf(word.Word());
  if (!told) return word.Needs("\"minimize\" or \"maximize\"");
  direction = *told;
  return absl::OkStatus();
}

absl::Status ReadSeveral(const KeyValue& value, StudySpec& spec) {
  if (value.file().ByClients()) {
    return value.Bad(
        "is one metric with \"ask_and_tell\"; give \"directions\", one for each value");
  }
  if (value.json().empty() || value.json().size() > kMostMetrics) {
    return value.Needs(absl::StrCat("a list of 1 to ", kMostMetrics, " metrics"));
  }
  spec.directions.clear();
  std::vector<std::string> names;
  for (const Json& each : value.json()) {
    std::string name;
    Direction direction = Direction::kMinimize;
    const KeyValue metric(value.file(), "metric", each);
    ESPALIER_RETURN_IF_ERROR(ReadOneOfSeveral(metric, names.empty(), name, direction));
    if (names.empty() && each.is_object()) ESPALIER_RETURN_IF_ERROR(ReadSource(metric, spec));
    if (name.empty() || std::find(names.begin(), names.end(), name) != names.end()) {
      return value.Needs("names that are different from each other, and not empty");
    }
    names.push_back(name);
    spec.directions.push_back(direction);
  }
  spec.metric = names.front();
  spec.other_metrics.assign(names.begin() + 1, names.end());
  return absl::OkStatus();
}

// The metric, or the first one, and where its values are found.
Json WithSource(const StudySpec& spec) {
  Json json;
  json["name"] = spec.metric;
  json["direction"] = ToString(spec.direction());
  const MetricFiles& files = spec.from_files;
  if (!spec.from_output.value.empty()) {
    json["from_output"] = spec.from_output.value;
    if (!spec.from_output.step.empty()) json["step"] = spec.from_output.step;
  } else if (!files.tag.empty()) {
    json["from_tensorboard"] = {{"folder", files.path}, {"tag", files.tag}};
  } else {
    json["from_file"] = {{"path", files.path}, {"value", files.value}};
    if (!files.step.empty()) json["from_file"]["step"] = files.step;
  }
  return json;
}

}  // namespace

absl::Status CheckPatterns(const OpenStudyFile& file, const StudySpec& spec) {
  if (spec.from_output.value.empty()) return absl::OkStatus();
  const auto made =
      OutputPattern::Make(spec.from_output.value, spec.from_output.step, FiguresNeeded(spec));
  if (made.ok()) return absl::OkStatus();
  return file.Bad("metric.from_output",
                  absl::StrCat("needs a pattern (RE2): ", std::string(made.status().message()),
                               ", got ", Quote(spec.from_output.value)));
}

absl::Status ReadMetric(const KeyValue& value, StudySpec& spec) {
  const Json& json = value.json();
  if (json.is_array()) return ReadSeveral(value, spec);
  if (json.is_string()) return value.Text(kMaxNameBytes, spec.metric);
  if (json == false) {
    spec.has_metric = false;
    return absl::OkStatus();
  }
  if (!json.is_object()) {
    return value.Needs(
        R"(a name, {"name": ..., "direction": "minimize" or "maximize"}, a list of these, or false)");
  }
  ESPALIER_RETURN_IF_ERROR(value.CheckKeys(kKeysOfMetric));
  if (json.contains("name")) {
    const KeyValue name(value.file(), "metric.name", json["name"]);
    ESPALIER_RETURN_IF_ERROR(name.Text(kMaxNameBytes, spec.metric));
  }
  if (json.contains("direction")) {
    const KeyValue word(value.file(), "metric.direction", json["direction"]);
    const std::optional<Direction> direction = DirectionOf(word.Word());
    if (!direction) return word.Needs("\"minimize\" or \"maximize\"");
    spec.directions = {*direction};
  }
  return ReadSource(value, spec);
}

Json MetricJson(const StudySpec& spec) {
  if (!spec.has_metric) return false;
  if (!spec.other_metrics.empty()) {
    Json all = Json::array();
    for (std::size_t i = 0; i < spec.directions.size(); ++i) {
      const std::string& name = i == 0 ? spec.metric : spec.other_metrics.at(i - 1);
      const bool read = i == 0 && spec.reads_values();
      all.push_back(read ? WithSource(spec)
                         : Json{{"name", name}, {"direction", ToString(spec.directions[i])}});
    }
    return all;
  }
  if (spec.reads_values()) return WithSource(spec);
  if (spec.by_clients() || spec.direction() == Direction::kMinimize) return spec.metric;
  return {{"name", spec.metric}, {"direction", ToString(spec.direction())}};
}

}  // namespace espalier
