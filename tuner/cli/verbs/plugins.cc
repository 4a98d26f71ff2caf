// `tuner plugins`: what a study or a service chooses by name, with the options of each.

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "allocator/policies/policy.h"
#include "allocator/pool_size/pool_size.h"
#include "base/plugin.h"
#include "tuner/cli/verb.h"
#include "tuner/core/pruners/pruner.h"
#include "tuner/core/samplers/sampler.h"
#include "tuner/core/terminators/terminator.h"
#include "tuner/server/engines/engines.h"

namespace espalier {
namespace {

using Json = nlohmann::ordered_json;

struct Kind {
  const char* key;      // in JSON
  const char* heading;  // of the text: what they are, and where one is named
  std::vector<PluginInfo> plugins;
};

std::vector<Kind> Kinds() {
  return {
      {"samplers", "Samplers: \"sampler\" in a study file", Samplers().Infos()},
      {"pruners", "Pruners: \"pruner\" in a study file", Pruners().Infos()},
      {"terminators", "Terminators: \"terminator\" in a study file", Terminators().Infos()},
      {"policies", "Policies: tuner serve --policy, or \"policy\" in the study file of tuner run",
       Policies().Infos()},
      {"pool_size_rules", "Pool-size rules: tuner serve --pool-size", PoolSizeRules().Infos()},
      {"engines", "Engines: tuner serve --engine", Engines().Infos()}};
}

constexpr const char* kHowToGiveOptions =
    "To give options: {\"name\": \"asha\", \"eta\": 4} in a study file, asha:eta=4 on the command "
    "line;\na value is a number, true, false or a word, and in a study file lists of numbers or an "
    "object where one is asked for.\n--engine-option account=vision for an engine's.\n";

std::string KindText(const Kind& kind) {
  std::string text = fmt::format("{}\n", kind.heading);
  for (const PluginInfo& plugin : kind.plugins) {
    text += fmt::format("  {:<26}{}\n", plugin.name, plugin.summary);
    for (const PluginOption& option : plugin.options) {
      text += fmt::format("    {:<24}  {}: {}\n",
                          fmt::format("{}={}", option.name, option.DefaultText()), option.meaning,
                          option.Range());
    }
  }
  return text;
}

// As JSON Schema names the parts of a range.
Json OptionJson(const PluginOption& option) {
  if (option.object) {
    return {{"name", option.name}, {"meaning", option.meaning}, {"type", "object"}};
  }
  if (option.rows) {
    const Json numbers = {{"type", "array"}, {"items", {{"type", "number"}}}};
    return {
        {"name", option.name}, {"meaning", option.meaning}, {"type", "array"}, {"items", numbers}};
  }
  if (option.text) {
    return {{"name", option.name},
            {"meaning", option.meaning},
            {"type", option.repeated ? "array" : "string"}};
  }
  if (option.flag || option.wordy()) {
    const Json flag = option.default_value > 0;
    Json json = {{"name", option.name},
                 {"meaning", option.meaning},
                 {"type", option.flag ? "boolean" : "string"}};
    if (!option.optional) json["default"] = option.flag ? flag : Json(option.DefaultText());
    if (!option.words.empty()) json["enum"] = option.words;
    return json;
  }
  const auto number = [&option](double value) {
    return option.whole ? Json(static_cast<std::int64_t>(value)) : Json(value);
  };
  Json json = {{"name", option.name},
               {"meaning", option.meaning},
               {"type", option.whole ? "integer" : "number"}};
  if (!option.optional) json["default"] = number(option.default_value);
  if (std::isfinite(option.least)) {
    json[option.open ? "exclusiveMinimum" : "minimum"] = number(option.least);
  }
  if (std::isfinite(option.most)) {
    json[option.open ? "exclusiveMaximum" : "maximum"] = number(option.most);
  }
  return json;
}

Json KindJson(const Kind& kind) {
  Json json = Json::array();
  for (const PluginInfo& plugin : kind.plugins) {
    Json options = Json::array();
    for (const PluginOption& option : plugin.options) options.push_back(OptionJson(option));
    json.push_back({{"name", plugin.name}, {"summary", plugin.summary}, {"options", options}});
  }
  return json;
}

// All kinds, or the plug-ins of that name alone, of the kinds that have one.
absl::StatusOr<std::vector<Kind>> KindsWith(const std::string& name) {
  std::vector<Kind> kinds = Kinds();
  if (name.empty()) return kinds;
  std::vector<std::string> known;
  for (Kind& kind : kinds) {
    for (const PluginInfo& plugin : kind.plugins) known.emplace_back(plugin.name);
    std::erase_if(kind.plugins, [&name](const PluginInfo& plugin) { return plugin.name != name; });
  }
  std::erase_if(kinds, [](const Kind& kind) { return kind.plugins.empty(); });
  if (kinds.empty()) return UnknownPlugin("plug-in", name, known);
  return kinds;
}

void PrintText(const std::vector<Kind>& kinds) {
  for (const Kind& kind : kinds) std::printf("%s\n", KindText(kind).c_str());
  std::printf("%s", kHowToGiveOptions);
}

void PrintJson(const std::vector<Kind>& kinds) {
  Json json;
  for (const Kind& kind : kinds) json[kind.key] = KindJson(kind);
  std::printf("%s\n", json.dump(2).c_str());
}

struct PluginsArguments {
  std::string name;  // empty: all
  bool as_json = false;
};

}  // namespace

VerbAction AddPlugins(CliCommand& command) {
  auto a = std::make_shared<PluginsArguments>();
  command.AddOption("name", a->name, "Name of the one to show (default: all)").TypeName("NAME");
  command.AddFlag("--json", a->as_json, "Print JSON, with each option's range as in JSON Schema");
  return [a] {
    const absl::StatusOr<std::vector<Kind>> kinds = KindsWith(a->name);
    if (!kinds.ok()) return Fail("plugins", kinds.status());
    a->as_json ? PrintJson(*kinds) : PrintText(*kinds);
    return ExitCode::kOk;
  };
}

}  // namespace espalier
