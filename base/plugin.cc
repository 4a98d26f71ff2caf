#include "base/plugin.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"

namespace espalier {

namespace {

constexpr double kMostWhole = 9007199254740992;  // 2^53: exact in a double as in an integer

std::string PluginPlace(std::string_view kind, std::string_view name) {
  return absl::StrCat(std::string(kind), " \"", std::string(name), "\"");
}

std::string OptionNames(const PluginInfo& plugin) {
  if (plugin.options.empty()) return "it takes none";
  return "it has " + absl::StrJoin(plugin.options, ", ", [](std::string* out, const auto& option) {
           out->append(option.name);
         });
}

}  // namespace

bool PluginOption::Takes(double value) const {
  if (!std::isfinite(value)) return false;
  if (whole && (value != std::floor(value) || std::abs(value) > kMostWhole)) return false;
  return open ? value > least && value < most : value >= least && value <= most;
}

std::string PluginOption::Range() const {
  if (text) return repeated ? "text, may be given several times" : "text";
  const char* const number = whole ? "a whole number" : "a number";
  if (open) return absl::StrCat(number, " > ", least, " and < ", most);
  if (std::isinf(most)) return absl::StrCat(number, " >= ", least);
  return absl::StrCat(number, " from ", least, " to ", most);
}

double OptionValues::operator[](std::string_view name) const {
  const auto at = values_.find(std::string(name));
  ESPALIER_CHECK(at != values_.end(), "a plug-in reads options of its own row only");
  return at->second;
}

std::int64_t OptionValues::Whole(std::string_view name) const {
  return static_cast<std::int64_t>((*this)[name]);
}

std::string OptionValues::Text(std::string_view name) const {
  const std::vector<std::string> given = Texts(name);
  return given.empty() ? "" : given.front();
}

std::vector<std::string> OptionValues::Texts(std::string_view name) const {
  const auto at = texts_.find(std::string(name));
  return at == texts_.end() ? std::vector<std::string>{} : at->second;
}

absl::Status UnknownPlugin(std::string_view kind, std::string_view name,
                           const std::vector<std::string>& known) {
  return absl::InvalidArgumentError(
      absl::StrCat(PluginPlace(kind, name), " is unknown; known are ", absl::StrJoin(known, ", ")));
}

absl::StatusOr<OptionValues> ReadOptions(std::string_view kind, const PluginInfo& plugin,
                                         const Options& given, const TextOptions& texts) {
  const auto find = [&](const std::string& name) -> absl::StatusOr<PluginOption> {
    for (const PluginOption& known : plugin.options) {
      if (known.name == name) return known;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        PluginPlace(kind, plugin.name), " has no option \"", name, "\"; ", OptionNames(plugin)));
  };
  Options values;
  for (const PluginOption& option : plugin.options) {
    if (!option.text) values[std::string(option.name)] = option.default_value;
  }
  for (const auto& [name, value] : given) {
    ESPALIER_ASSIGN_OR_RETURN(const PluginOption option, find(name));
    if (option.text || !option.Takes(value)) {
      return RefusedBy(kind, plugin.name, OptionNeeds(name, option.Range(), value));
    }
    values[name] = value;
  }
  for (const auto& [name, all] : texts) {
    ESPALIER_ASSIGN_OR_RETURN(const PluginOption option, find(name));
    if (option.text && (option.repeated || all.size() <= 1)) continue;
    return RefusedBy(
        kind, plugin.name,
        absl::InvalidArgumentError(absl::StrCat("option \"", name, "\" needs ", option.Range(),
                                                ", got \"", absl::StrJoin(all, "\", \""), "\"")));
  }
  return OptionValues(std::move(values), texts);
}

std::vector<std::string> CutFractions(std::string_view kind, const PluginInfo& plugin,
                                      Options& options) {
  std::vector<std::string> cut;
  for (const PluginOption& option : plugin.options) {
    const auto at = options.find(std::string(option.name));
    if (!option.whole || at == options.end() || option.Takes(at->second)) continue;
    const double whole = std::trunc(at->second);
    if (!option.Takes(whole)) continue;
    cut.push_back(absl::StrCat(PluginPlace(kind, plugin.name), ": option \"", at->first,
                               "\" takes whole numbers, ", at->second, " counts as ", whole));
    at->second = whole;
  }
  return cut;
}

absl::Status OptionNeeds(std::string_view option, const std::string& needed, double got) {
  return absl::InvalidArgumentError(
      absl::StrCat("option \"", std::string(option), "\" needs ", needed, ", got ", got));
}

absl::Status RefusedBy(std::string_view kind, std::string_view name, const absl::Status& refusal) {
  return absl::Status(refusal.code(),
                      absl::StrCat(PluginPlace(kind, name), ": ", refusal.message()));
}

}  // namespace espalier
