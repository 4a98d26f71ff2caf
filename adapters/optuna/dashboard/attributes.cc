#include "adapters/optuna/dashboard/attributes.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "adapters/optuna/dashboard/python_text.h"
#include "base/json/python_json.h"
#include "tuner/api/json.h"

namespace espalier::optuna_dashboard {

namespace {

constexpr char kArtifactPrefix[] = "artifacts:";
constexpr char kPlotPrefix[] = "dashboard:plot_data:";

rapidjson::Document Parse(std::string_view json) {
  rapidjson::Document document;
  if (ParsePythonJson(json, document).IsError()) document.SetNull();
  return document;
}

std::string TextAt(const rapidjson::Value& object, const char* key) {
  const auto it = object.FindMember(key);
  return it != object.MemberEnd() && it->value.IsString() ? it->value.GetString() : "";
}

std::optional<std::int64_t> Integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Pieces by their numbers, from 0.
std::string Joined(const Texts& pieces) {
  std::string text;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const auto piece = pieces.find(absl::StrCat(i));
    if (piece != pieces.end()) text += StringOr(piece->second, "");
  }
  return text;
}

// JSON within a JSON string; null where the artifact was removed.
void AddArtifacts(const Texts& attributes, std::string_view prefix,
                  std::vector<Artifact>& artifacts) {
  for (const auto& [id, json] : WithPrefix(attributes, prefix)) {
    const rapidjson::Document document = Parse(StringOr(json, ""));
    if (!document.IsObject()) continue;
    artifacts.push_back({TextAt(document, "artifact_id"), TextAt(document, "filename"),
                         TextAt(document, "mimetype"), TextAt(document, "encoding")});
  }
}

}  // namespace

Texts WithPrefix(const Texts& attributes, std::string_view prefix) {
  Texts found;
  for (auto it = attributes.lower_bound(std::string(prefix));
       it != attributes.end() && it->first.compare(0, prefix.size(), prefix) == 0; ++it) {
    found.emplace_hint(found.end(), it->first.substr(prefix.size()), it->second);
  }
  return found;
}

const std::string* FindText(const Texts& attributes, std::string_view key) {
  const auto it = attributes.find(std::string(key));
  return it == attributes.end() ? nullptr : &it->second;
}

std::vector<Artifact> ArtifactsOf(const Texts& study_attributes) {
  std::vector<Artifact> artifacts;
  AddArtifacts(study_attributes, kArtifactPrefix, artifacts);
  return artifacts;
}

std::vector<Artifact> ArtifactsOf(const Texts& study_attributes, const TrialCopy& trial) {
  std::vector<Artifact> artifacts;
  // Where older dashboards kept them; and, as null, those removed since the trial ended.
  const std::string prefix = RemovedArtifactKey(trial.id, "");
  AddArtifacts(study_attributes, prefix, artifacts);
  AddArtifacts(trial.attributes.system, kArtifactPrefix, artifacts);
  std::erase_if(artifacts, [&](const Artifact& artifact) {
    const std::string* text = FindText(study_attributes, prefix + artifact.id);
    return text != nullptr && *text == kRemovedArtifact;
  });
  return artifacts;
}

std::string RemovedArtifactKey(TrialId trial, const std::string& id) {
  return absl::StrCat("dashboard:artifacts:", trial.value, ":", id);
}

std::string ArtifactKey(const std::string& id) { return kArtifactPrefix + id; }

std::string ArtifactJson(const Artifact& artifact) {
  return absl::StrCat("{\"artifact_id\": ", QuoteJson(artifact.id),
                      ", \"filename\": ", QuoteJson(artifact.filename),
                      ", \"mimetype\": ", QuoteJson(artifact.mimetype), ", \"encoding\": ",
                      artifact.encoding.empty() ? "null" : QuoteJson(artifact.encoding), "}");
}

std::map<std::string, std::string> PlotsOf(const Texts& study_attributes) {
  std::map<std::string, Texts> pieces;
  for (const auto& [key, json] : WithPrefix(study_attributes, kPlotPrefix)) {
    // The id may have colons of its own.
    const std::size_t colon = key.rfind(':');
    if (colon != std::string::npos) pieces[key.substr(0, colon)][key.substr(colon + 1)] = json;
  }
  std::map<std::string, std::string> plots;
  for (const auto& [id, texts] : pieces) plots[id] = Joined(texts);
  return plots;
}

bool IsPreferential(const Texts& study_attributes) {
  const std::string* text = FindText(study_attributes, "preference:is_preferential");
  return text != nullptr && *text == "true";
}

std::vector<std::pair<std::int64_t, std::int64_t>> PreferencesOf(const Texts& study_attributes) {
  std::vector<std::pair<std::int64_t, std::int64_t>> preferences;
  for (const auto& [id, json] : WithPrefix(study_attributes, kPreferencePrefix)) {
    const rapidjson::Document pairs = Parse(json);
    if (!pairs.IsArray()) continue;
    for (const auto& pair : pairs.GetArray()) {
      if (pair.IsArray() && pair.Size() == 2 && pair[0].IsInt64() && pair[1].IsInt64()) {
        preferences.emplace_back(pair[0].GetInt64(), pair[1].GetInt64());
      }
    }
  }
  return preferences;
}

std::vector<std::int64_t> SkippedTrialIds(const Texts& study_attributes) {
  std::vector<std::int64_t> ids;
  for (const auto& [id, json] : WithPrefix(study_attributes, kSkipPrefix)) {
    if (const auto number = Integer(id)) ids.push_back(*number);
  }
  return ids;
}

std::vector<std::int64_t> PreferredTrials(const Texts& study_attributes,
                                          const std::vector<TrialCopy>& trials) {
  std::set<std::int64_t> worse;
  std::set<std::int64_t> better;
  for (const auto& [a, b] : PreferencesOf(study_attributes)) {
    better.insert(a);
    worse.insert(b);
  }
  const std::vector<std::int64_t> skipped = SkippedTrialIds(study_attributes);
  std::vector<std::int64_t> preferred;
  for (const std::int64_t number : better) {
    if (worse.contains(number) || number < 0 || number >= std::ssize(trials)) continue;
    const std::int64_t id = trials[static_cast<std::size_t>(number)].id.value;
    if (std::find(skipped.begin(), skipped.end(), id) == skipped.end()) preferred.push_back(number);
  }
  return preferred;
}

std::vector<std::string> ObjectiveNames(const Texts& study_attributes) {
  std::vector<std::string> names;
  const std::string* text = FindText(study_attributes, "study:metric_names");
  if (text == nullptr) text = FindText(study_attributes, "dashboard:objective_names");
  if (text == nullptr) return names;
  const rapidjson::Document list = Parse(*text);
  if (!list.IsArray()) return names;
  for (const auto& name : list.GetArray())
    names.emplace_back(name.IsString() ? name.GetString() : "");
  return names;
}

}  // namespace espalier::optuna_dashboard
