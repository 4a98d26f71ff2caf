#include "tuner/cli/options/plugin_argument.h"

#include <fmt/format.h>

#include <sstream>

#include "allocator/policies/policy.h"

namespace espalier {

absl::StatusOr<PluginSpec> ParsePlugin(const std::string& what, const std::string& text) {
  PluginSpec plugin;
  const std::size_t colon = text.find(':');
  plugin.name = text.substr(0, colon);
  if (plugin.name.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("{} \"{}\": must be NAME or NAME:option=value,...", what, text));
  }
  if (colon == std::string::npos) return plugin;
  std::istringstream options(text.substr(colon + 1));
  std::string option;
  bool any = false;
  while (std::getline(options, option, ',')) {
    any = true;
    const std::size_t equals = option.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == option.size()) {
      return absl::InvalidArgumentError(
          fmt::format("{} \"{}\": option \"{}\": must be name=value, e.g. {}:option=2", what, text,
                      option, plugin.name));
    }
    const OptionValue value = OptionValue::OfText(option.substr(equals + 1));
    if (!plugin.options.emplace(option.substr(0, equals), value).second) {
      return absl::InvalidArgumentError(fmt::format("{} \"{}\": option \"{}\" is given twice", what,
                                                    text, option.substr(0, equals)));
    }
  }
  if (!any) {
    return absl::InvalidArgumentError(
        fmt::format("{} \"{}\": nothing follows the colon; give option=value", what, text));
  }
  return plugin;
}

absl::Status CheckPolicy(const PluginSpec& policy) {
  return MakePolicy(policy.name, policy.options).status();
}

std::string PoliciesHelp(const std::string& heading) {
  std::string text = fmt::format("\n{}:\n", heading);
  for (const PluginInfo& info : Policies().Infos()) {
    text += fmt::format("  {:<20}{}\n", info.name, info.summary);
  }
  return text;
}

}  // namespace espalier
