// StudySpec to JSON.

#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "search_spaces/json_text.h"
#include "tuner/study_file/study_file.h"
#include "tuner/study_file/timeout_keys.h"
#include "tuner/study_file/wording.h"

namespace espalier {

namespace {

using search_spaces_json::Json;

constexpr double kExactIntegers = 9007199254740992;  // every integer below is a double

Json JsonOf(double number) {
  const bool whole = number == std::floor(number) && std::abs(number) < kExactIntegers;
  return whole ? Json(static_cast<std::int64_t>(number)) : Json(number);
}

std::string TextOf(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Null, which is not written, for 0.
Json Unless0(double number) { return number == 0 ? Json() : JsonOf(number); }

Json JsonOf(const PluginSpec& plugin) {
  if (plugin.options.empty()) return plugin.name;
  Json json = {{"name", plugin.name}};
  for (const auto& [option, value] : plugin.options) json[option] = JsonOf(value);
  return json;
}

Json MetricJson(const StudySpec& spec) {
  if (!spec.has_metric) return false;
  if (spec.by_clients() || spec.direction() == Direction::kMinimize) return spec.metric;
  return {{"name", spec.metric}, {"direction", ToString(spec.direction())}};
}

Json DirectionsJson(const StudySpec& spec) {
  if (!spec.by_clients()) return {};
  Json directions = Json::array();
  for (const Direction direction : spec.directions) directions.push_back(ToString(direction));
  return directions;
}

Json SlotsJson(const StudySpec& spec) {
  if (spec.min_slots == spec.max_slots) return spec.min_slots;
  Json slots = {{"min", spec.min_slots}};
  if (spec.max_slots > 0) slots["max"] = spec.max_slots;
  return slots;
}

template <std::size_t kIndex>
Json TimeoutJson(const StudySpec& spec) {
  return Unless0(spec.timeouts.*kTimeoutKeys[kIndex].seconds);
}

struct WrittenKey {
  const char* name;
  Json (*value)(const StudySpec& spec);  // null: it is not written
};

// In the order in which they are written.
constexpr std::array<WrittenKey, 34> kWrittenKeys = {{
    {"name", [](const StudySpec& s) { return Json(s.name); }},
    {"command", [](const StudySpec& s) { return Json(s.command); }},
    {"metric", MetricJson},
    {"search_space",
     [](const StudySpec& s) {
       return s.space.dimensions().empty() ? Json() : Json::parse(s.space.ToJson());
     }},
    {"sampler", [](const StudySpec& s) { return JsonOf(s.sampler); }},
    {"pruner", [](const StudySpec& s) { return JsonOf(s.pruner); }},
    {"policy", [](const StudySpec& s) { return JsonOf(s.policy); }},
    {"trials", [](const StudySpec& s) { return s.max_trials == 0 ? Json() : Json(s.max_trials); }},
    {"time_limit_s", [](const StudySpec& s) { return Unless0(s.time_limit_s); }},
    {"cost_limit", [](const StudySpec& s) { return Unless0(s.cost_limit); }},
    {"slot_price_per_hour", [](const StudySpec& s) { return Unless0(s.slot_price_per_hour); }},
    {"target", [](const StudySpec& s) { return s.target ? JsonOf(*s.target) : Json(); }},
    {"max_concurrent_trials",
     [](const StudySpec& s) {
       return s.max_concurrent_trials == 0 ? Json() : Json(s.max_concurrent_trials);
     }},
    {"max_step", [](const StudySpec& s) { return s.max_step == 0 ? Json() : Json(s.max_step); }},
    {"promise",
     [](const StudySpec& s) {
       return Json{{"best_k", s.best_k}};
     }},
    {"slots", SlotsJson},
    {"share", [](const StudySpec& s) { return JsonOf(s.share); }},
    {"batch_mode",
     [](const StudySpec& s) {
       return Json(s.batch_mode == BatchMode::kAdaptive ? "adaptive" : "fixed");
     }},
    {"seed", [](const StudySpec& s) { return Json(s.seed); }},
    {"max_consecutive_failures",
     [](const StudySpec& s) { return Json(s.max_consecutive_failures); }},
    {"max_restarts", [](const StudySpec& s) { return Json(s.max_restarts); }},
    {"stragglers",
     [](const StudySpec& s) { return Json(s.replace_stragglers ? "replace" : "ignore"); }},
    {"stop_grace_s", [](const StudySpec& s) { return JsonOf(s.stop_grace_s); }},
    {kTimeoutKeys[0].key, TimeoutJson<0>},
    {kTimeoutKeys[1].key, TimeoutJson<1>},
    {kTimeoutKeys[2].key, TimeoutJson<2>},
    {kTimeoutKeys[3].key, TimeoutJson<3>},
    {kTimeoutKeys[4].key, TimeoutJson<4>},
    {"env", [](const StudySpec& s) { return Json(s.environment); }},
    {"preload", [](const StudySpec& s) { return s.preload ? Json(*s.preload) : Json(false); }},
    {"needs", [](const StudySpec& s) { return Json(s.needs); }},
    {"directory", [](const StudySpec& s) { return Json(s.directory); }},
    {"ask_and_tell", [](const StudySpec& s) { return Json(s.by_clients()); }},
    {"directions", DirectionsJson},
}};

// Whether the key is written also where its value is the default.
bool AlwaysWritten(std::string_view key, const StudySpec& spec) {
  if (key == "policy") return spec.names_policy;
  return key == "name" || key == "directory" || (key == "directions" && spec.wording.texts.empty());
}

}  // namespace

std::string WriteStudy(const StudySpec& spec) {
  const StudySpec worded = FieldsOf(spec.wording);
  Json json = Json::object();
  for (const WrittenKey& key : kWrittenKeys) {
    Json value = key.value(spec);
    const bool as_worded = value == key.value(worded);
    const auto text = spec.wording.texts.find(key.name);
    if (as_worded && text != spec.wording.texts.end()) {
      json[key.name] = Json::parse(text->second);
    } else if (!value.is_null() && (!as_worded || AlwaysWritten(key.name, spec))) {
      json[key.name] = std::move(value);
    }
  }
  return TextOf(json);
}

std::string DirectionNote(const StudySpec& spec) {
  const auto& texts = spec.wording.texts;
  const auto metric = texts.find("metric");
  if (metric == texts.end() || !spec.has_metric || texts.contains("directions")) return "";
  const Json worded = Json::parse(metric->second);
  if (worded.is_object() && worded.contains("direction")) return "";
  const std::string name = Json(spec.metric).dump();
  return absl::StrCat(name, " is minimized, as \"metric\" gives no direction; to maximize it: ",
                      "\"metric\": {\"name\": ", name, ", \"direction\": \"maximize\"}");
}

std::vector<KeyDifference> DifferencesOf(const StudySpec& before, const StudySpec& after) {
  std::vector<KeyDifference> differences;
  for (const WrittenKey& key : kWrittenKeys) {
    const Json was = key.value(before);
    const Json is = key.value(after);
    // That a policy is named says something also where it is the default one.
    const bool names_it =
        std::string_view(key.name) == "policy" && before.names_policy != after.names_policy;
    if (was != is || names_it) differences.push_back({key.name, TextOf(was), TextOf(is)});
  }
  return differences;
}

absl::Status CheckStudySize(const StudySpec& spec, std::string_view label) {
  const std::size_t bytes = WriteStudy(spec).size();
  if (bytes <= search_spaces_json::kMaxTextBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(std::string(label), ": has ", bytes, " bytes with its search space, at most ",
                   search_spaces_json::kMaxTextBytes, " are accepted"));
}

}  // namespace espalier
