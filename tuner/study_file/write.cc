// StudySpec to JSON.

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/json/parse_json.h"
#include "search_spaces/json_text.h"
#include "tuner/study_file/keys.h"
#include "tuner/study_file/study_file.h"
#include "tuner/study_file/wording.h"

namespace espalier {

namespace {

using search_spaces_json::Json;

std::string TextOf(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Tells a study's fields from others, so that a text need not be read to see whether it is of them.
std::uint64_t MarkOf(const StudySpec& spec) {
  Json fields = Json::array({spec.names_policy});
  for (const StudyKey& key : StudyKeys()) fields.push_back(key.write(spec));
  return std::hash<std::string>()(TextOf(fields)) | 1;
}

// With 1 for true and 0 for false, which mean the same as an option of a plug-in.
Json AsNumbers(Json json) {
  if (json.is_boolean()) return json.get<bool>() ? 1 : 0;
  if (json.is_object()) {
    for (auto& item : json.items()) item.value() = AsNumbers(item.value());
  }
  return json;
}

// Whether the key is written also where its value is the default.
bool AlwaysWritten(const StudyKey& key, const StudySpec& spec) {
  if (key.name == "policy") return spec.names_policy;
  return key.write.text == KeyText::kAlwaysByField ||
         (key.name == "directions" && spec.wording.text.empty());
}

// The text kept, with other values where fields have changed since.
std::string Rewritten(const StudySpec& spec) {
  const Json kept = spec.wording.text.empty() ? Json::object()
                                              : ParseJson<Json>(spec.wording.text, kMaxRecordDepth);
  const StudySpec worded = FieldsOf(spec.wording.text, kept);
  Json json = Json::object();
  for (const StudyKey& key : StudyKeys()) {
    Json value = key.write(spec);
    const bool as_worded = value == key.write(worded);
    const auto text = kept.find(key.name);
    if (as_worded && text != kept.end()) {
      json[std::string(key.name)] = *text;
    } else if (!value.is_null() && (!as_worded || AlwaysWritten(key, spec))) {
      json[std::string(key.name)] = std::move(value);
    }
  }
  return TextOf(json);
}

}  // namespace

bool Writable(const Json& json) {
  try {
    (void)json.dump();
    return true;
  } catch (const Json::type_error&) {
    return false;
  }
}

absl::Status KeepWording(const OpenStudyFile& file, StudySpec& spec) {
  Json json = Json::object();
  for (const StudyKey& key : StudyKeys()) {
    const auto given = file.json.find(key.name);
    const bool by_field = key.write.text != KeyText::kAsWritten;
    if (given == file.json.end() && key.write.text != KeyText::kAlwaysByField) continue;
    Json value = by_field ? key.write(spec) : *given;
    if (value.is_null()) value = *given;  // an empty object of parameters
    if (by_field && !Writable(value)) {
      return file.Bad(key.name,
                      absl::StrCat("needs UTF-8, got ", search_spaces_json::Quote(value)));
    }
    json[std::string(key.name)] = std::move(value);
  }
  spec.wording = {TextOf(json), MarkOf(spec)};
  return absl::OkStatus();
}

bool IsWorded(const StudySpec& spec) {
  return spec.wording.fields != 0 && spec.wording.fields == MarkOf(spec);
}

std::string WriteStudy(const StudySpec& spec) {
  return IsWorded(spec) ? spec.wording.text : Rewritten(spec);
}

std::string MaskEnvironment(const std::string& study_json) {
  Json json = ParseJson<Json>(study_json, kMaxRecordDepth);
  if (json.is_discarded()) return Json(kMaskedValue).dump();  // what cannot be read shows nothing
  const auto environment = json.is_object() ? json.find("env") : json.end();
  if (environment == json.end()) return study_json;
  if (environment->is_object()) {
    for (auto& variable : environment->items()) variable.value() = kMaskedValue;
  } else {
    *environment = kMaskedValue;
  }
  return TextOf(json);
}

std::string DirectionNote(const StudySpec& spec) {
  if (!spec.has_metric || spec.wording.text.empty()) return "";
  const Json json = ParseJson<Json>(spec.wording.text, kMaxRecordDepth);
  const auto metric = json.find("metric");
  if (metric == json.end() || json.contains("directions")) return "";
  if (metric->is_array() || (metric->is_object() && metric->contains("direction"))) return "";
  const std::string name = Json(spec.metric).dump();
  return absl::StrCat(name, " is minimized, as \"metric\" gives no direction; to maximize it: ",
                      "\"metric\": {\"name\": ", name, ", \"direction\": \"maximize\"}");
}

std::vector<KeyDifference> DifferencesOf(const StudySpec& before, const StudySpec& after) {
  std::vector<KeyDifference> differences;
  for (const StudyKey& key : StudyKeys()) {
    const Json was = key.write(before);
    const Json is = key.write(after);
    // That a policy is named says something also where it is the default one.
    const bool names_it = key.name == "policy" && before.names_policy != after.names_policy;
    if (AsNumbers(was) != AsNumbers(is) || names_it) {
      differences.push_back({std::string(key.name), TextOf(was), TextOf(is)});
    }
  }
  return differences;
}

absl::Status CheckStudySize(const StudySpec& spec, std::string_view label) {
  return CheckTextSize(WriteStudy(spec), label);
}

absl::Status CheckTextSize(std::string_view text, std::string_view label) {
  if (text.size() <= search_spaces_json::kMaxTextBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      std::string(label), ": has ", text.size(), " bytes with its search space, at most ",
      search_spaces_json::kMaxTextBytes, " are accepted"));
}

}  // namespace espalier
