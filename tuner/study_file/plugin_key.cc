#include "tuner/study_file/plugin_key.h"

#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/json/parse_json.h"

namespace espalier {

namespace {

using search_spaces_json::Json;

constexpr double kExactIntegers = 9007199254740992;  // every integer below is a double

constexpr std::size_t kMostObjectBytes = std::size_t{1} << 16;
constexpr std::size_t kMostRowNumbers = 20000;

constexpr const char* kNeedsOption = "a number, true, false, a word, lists of numbers or an object";

// Lists of numbers; how many each has is the plug-in's to say.
absl::Status ReadRows(const KeyValue& value, OptionValue& rows) {
  std::vector<std::vector<double>> read;
  std::size_t numbers = 0;
  for (const Json& row : value.json()) {
    if (!row.is_array()) return value.Needs(kNeedsOption);
    read.emplace_back();
    for (const Json& number : row) {
      if (!number.is_number()) return value.Needs(kNeedsOption);
      if (++numbers > kMostRowNumbers) {
        return value.Bad(absl::StrCat("has more than ", kMostRowNumbers, " numbers"));
      }
      read.back().push_back(number.get<double>());
    }
  }
  rows = OptionValue::OfRows(std::move(read));
  return absl::OkStatus();
}

// An option by its name in `options`; if it is a plug-in itself, which an object with a "name" is,
// its own options too.
absl::Status ReadOption(const KeyValue& value, const std::string& name, Options& options) {
  const Json& json = value.json();
  if (json.is_boolean()) {
    options[name] = json.get<bool>();
  } else if (json.is_number()) {
    options[name] = json.get<double>();
  } else if (json.is_string()) {
    std::string word;
    ESPALIER_RETURN_IF_ERROR(value.Text(kMaxNameBytes, word));
    options[name] = word;
  } else if (json.is_object() && json.contains("name")) {
    PluginSpec plugin;
    ESPALIER_RETURN_IF_ERROR(ReadPlugin(value, plugin));
    options[name] = plugin.name;
    for (const auto& [option, setting] : plugin.options) {
      options[absl::StrCat(name, ".", option)] = setting;
    }
  } else if (json.is_object()) {
    std::string text = json.dump();
    if (text.size() > kMostObjectBytes) {
      return value.Bad(
          absl::StrCat("an object of ", text.size(), " bytes has more than ", kMostObjectBytes));
    }
    options[name] = OptionValue::OfObject(std::move(text));
  } else if (json.is_array()) {
    return ReadRows(value, options[name]);
  } else {
    return value.Needs(kNeedsOption);
  }
  return absl::OkStatus();
}

Json JsonOf(const OptionValue& value) {
  if (value.IsObject()) return ParseJson<Json>(value.ObjectJson());
  if (value.IsRows()) {
    Json rows = Json::array();
    for (const std::vector<double>& row : value.Rows()) {
      Json& numbers = rows.emplace_back(Json::array());
      for (const double number : row) numbers.push_back(espalier::JsonOf(number));
    }
    return rows;
  }
  if (value.IsWord()) return value.Word();
  return value.IsFlag() ? Json(value.Number() > 0) : espalier::JsonOf(value.Number());
}

}  // namespace

absl::Status ReadPlugin(const KeyValue& value, PluginSpec& plugin) {
  const Json& json = value.json();
  plugin.options.clear();
  if (json.is_string()) return value.Text(kMaxNameBytes, plugin.name);
  if (!json.is_object() || !json.contains("name")) {
    return value.Needs(R"(a name or an object like {"name": ..., option: value})");
  }
  for (const auto& [option, setting] : json.items()) {
    const std::string place = absl::StrCat(std::string(value.key()), ".", option);
    const KeyValue within(value.file(), place, setting);
    ESPALIER_RETURN_IF_ERROR(option == "name" ? within.Text(kMaxNameBytes, plugin.name)
                                              : ReadOption(within, option, plugin.options));
  }
  return absl::OkStatus();
}

// Options of a plug-in that is an option stand in an object of its own.
Json JsonOf(const PluginSpec& plugin) {
  if (plugin.options.empty()) return plugin.name;
  Json json = {{"name", plugin.name}};
  std::map<std::string, PluginSpec> within;
  for (const auto& [name, value] : plugin.options) {
    const std::string first = name.substr(0, name.find('.'));
    const auto part = plugin.options.find(first);
    if (first == name || part == plugin.options.end() || !part->second.IsWord()) {
      json[name] = JsonOf(value);
      continue;
    }
    within[first].name = part->second.Word();
    within[first].options[name.substr(first.size() + 1)] = value;
  }
  for (const auto& [name, part] : within) json[name] = JsonOf(part);
  return json;
}

Json JsonOf(double number) {
  const bool whole = number == std::floor(number) && std::abs(number) < kExactIntegers;
  return whole ? Json(static_cast<std::int64_t>(number)) : Json(number);
}

}  // namespace espalier
