#include "tuner/api/notes.h"

#include <charconv>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/json/parse_json.h"
#include "tuner/api/json.h"

namespace espalier {

namespace {

constexpr std::string_view kVersion = "note_ver";
constexpr std::string_view kBody = "note_str:";

std::string KeyOf(std::optional<TrialId> trial, std::string_view what) {
  return absl::StrCat("dashboard:", trial ? absl::StrCat(trial->value, ":") : "",
                      std::string(what));
}

std::int64_t IntegerOr0(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : 0;
}

// What a string of JSON says; as it is where it is none that can be read.
std::string TextOf(const std::string& json) {
  const nlohmann::json value = ParseJson(json);
  return value.is_string() ? value.get<std::string>() : json;
}

// A long note is in pieces, with their numbers at the end of their keys, from 0.
std::string BodyOf(const AttributeTexts& attributes, const std::string& prefix) {
  std::string body;
  for (int i = 0;; ++i) {
    const auto piece = attributes.find(absl::StrCat(prefix, i));
    if (piece == attributes.end()) return body;
    body += TextOf(piece->second);
  }
}

}  // namespace

Note NoteOf(const AttributeTexts& study_attributes, std::optional<TrialId> trial) {
  const auto version = study_attributes.find(KeyOf(trial, kVersion));
  if (version == study_attributes.end()) return {};
  return {IntegerOr0(version->second), BodyOf(study_attributes, KeyOf(trial, kBody))};
}

std::vector<std::pair<std::string, std::string>> NoteAttributes(
    const AttributeTexts& study_attributes, std::optional<TrialId> trial, const Note& note) {
  std::vector<std::pair<std::string, std::string>> attributes;
  const std::string prefix = KeyOf(trial, kBody);
  const std::string first = prefix + "0";
  attributes.emplace_back(first, QuoteJson(note.body));
  for (auto piece = study_attributes.lower_bound(prefix);
       piece != study_attributes.end() && piece->first.starts_with(prefix); ++piece) {
    if (piece->first != first) attributes.emplace_back(piece->first, "\"\"");
  }
  attributes.emplace_back(KeyOf(trial, kVersion), absl::StrCat(note.version));
  return attributes;
}

}  // namespace espalier
