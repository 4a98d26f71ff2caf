#include "base/plugin.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/near_name.h"

namespace espalier {

namespace {

constexpr double kMostWhole = 9007199254740992;  // 2^53: exact in a double as in an integer

std::string PluginPlace(std::string_view kind, std::string_view name) {
  return absl::StrCat(std::string(kind), " \"", std::string(name), "\"");
}

void Append(std::string* out, std::string_view word) { out->append(word); }

std::string OptionNames(const PluginInfo& plugin) {
  if (plugin.options.empty()) return "it takes none";
  return "it has " + absl::StrJoin(plugin.options, ", ", [](std::string* out, const auto& option) {
           out->append(option.name);
         });
}

// At least one row, of at least one number.
bool AreEven(const std::vector<std::vector<double>>& rows) {
  return !rows.empty() && !rows.front().empty() &&
         std::ranges::all_of(rows, [&rows](const std::vector<double>& row) {
           return row.size() == rows.front().size() &&
                  std::ranges::all_of(row, [](double x) { return std::isfinite(x); });
         });
}

std::string RowText(const std::vector<double>& row) {
  return absl::StrCat("[", absl::StrJoin(row, ", "), "]");
}

}  // namespace

bool PluginOption::Takes(const OptionValue& value) const {
  if (rows || value.IsRows()) return rows && value.IsRows() && AreEven(value.Rows());
  if (object || value.IsObject()) return object && value.IsObject();
  if (value.IsWord()) {
    return text || !plugin.empty() || std::ranges::find(words, value.Word()) != words.end();
  }
  if (wordy() || (value.IsFlag() && !flag)) return false;
  const double number = value.Number();
  if (flag) return number == 0 || number == 1;
  if (!std::isfinite(number)) return false;
  if (whole && (number != std::floor(number) || std::abs(number) > kMostWhole)) return false;
  return open ? number > least && number < most : number >= least && number <= most;
}

std::string PluginOption::Range() const {
  if (object) return "an object";
  if (rows) return "lists of equally many numbers";
  if (text) return repeated ? "text, may be given several times" : "text";
  if (flag) return "true or false";
  if (!plugin.empty()) return "the name of one, and options of it";
  if (words.size() == 1) return std::string(words.front());
  if (!words.empty()) {
    return absl::StrCat(absl::StrJoin(words.begin(), words.end() - 1, ", ", Append), " or ",
                        std::string(words.back()));
  }
  const char* const number = whole ? "a whole number" : "a number";
  if (open && std::isinf(most)) return absl::StrCat(number, " > ", least);
  if (open) return absl::StrCat(number, " > ", least, " and < ", most);
  if (std::isinf(least) && std::isinf(most)) return number;
  if (std::isinf(most)) return absl::StrCat(number, " >= ", least);
  return absl::StrCat(number, " from ", least, " to ", most);
}

std::string PluginOption::DefaultText() const {
  if (text || object || rows || optional) return "";
  if (flag) return default_value > 0 ? "true" : "false";
  if (!plugin.empty()) return std::string(plugin);
  if (!words.empty()) return std::string(words.at(static_cast<std::size_t>(default_value)));
  return OptionValue(default_value).ToText();
}

std::string OptionValue::ToText() const {
  if (IsWord()) return Word();
  if (IsObject()) return ObjectJson();
  if (IsRows()) {
    return absl::StrCat(
        "[",
        absl::StrJoin(Rows(), ", ",
                      [](std::string* out, const auto& row) { out->append(RowText(row)); }),
        "]");
  }
  if (IsFlag()) return Number() > 0 ? "true" : "false";
  return absl::StrCat(Number());
}

OptionValue OptionValue::OfText(const std::string& text) {
  double number = 0;
  if (absl::SimpleAtod(text, &number)) return number;
  if (text == "true" || text == "false") return text == "true";
  return text;
}

double OptionValues::operator[](std::string_view name) const {
  const auto at = values_.find(std::string(name));
  ESPALIER_CHECK(at != values_.end(), "a plug-in reads options of its own row only");
  return at->second;
}

std::int64_t OptionValues::Whole(std::string_view name) const {
  return static_cast<std::int64_t>((*this)[name]);
}

std::optional<double> OptionValues::Given(std::string_view name) const {
  const auto at = values_.find(std::string(name));
  return at == values_.end() ? std::nullopt : std::optional(at->second);
}

std::string OptionValues::PluginName(std::string_view name) const {
  const auto at = plugins_.find(std::string(name));
  ESPALIER_CHECK(at != plugins_.end(), "a plug-in reads options of its own row only");
  return at->second.Word();
}

Options OptionValues::PluginOptions(std::string_view name) const {
  const std::string before = absl::StrCat(std::string(name), ".");
  Options own;
  for (const auto& [option, value] : plugins_) {
    if (option.starts_with(before)) own[option.substr(before.size())] = value;
  }
  return own;
}

std::string OptionValues::Text(std::string_view name) const {
  const std::vector<std::string> given = Texts(name);
  return given.empty() ? "" : given.front();
}

std::vector<std::string> OptionValues::Texts(std::string_view name) const {
  const auto at = texts_.find(std::string(name));
  return at == texts_.end() ? std::vector<std::string>{} : at->second;
}

std::vector<std::vector<double>> OptionValues::Rows(std::string_view name) const {
  const auto at = rows_.find(std::string(name));
  return at == rows_.end() ? std::vector<std::vector<double>>{} : at->second.Rows();
}

std::string OptionValues::Object(std::string_view name) const {
  const std::string given = Text(name);
  return given.empty() ? "{}" : given;
}

absl::Status UnknownPlugin(std::string_view kind, std::string_view name,
                           const std::vector<std::string>& known) {
  return absl::InvalidArgumentError(
      absl::StrCat(PluginPlace(kind, name), " is unknown; known are ", absl::StrJoin(known, ", ")));
}

namespace {

// The refusal of a value, with the word that may be meant.
absl::Status Refused(const PluginOption& option, const OptionValue& value) {
  const absl::Status refusal = OptionNeeds(option.name, option.Range(), value);
  const std::string_view near = value.IsWord() ? NearName(value.Word(), option.words) : "";
  if (near.empty()) return refusal;
  return absl::InvalidArgumentError(
      absl::StrCat(refusal.message(), ", did you mean \"", std::string(near), "\"?"));
}

class OptionReader {
 public:
  OptionReader(std::string_view kind, const PluginInfo& plugin) : kind_(kind), plugin_(plugin) {
    for (const PluginOption& option : plugin.options) {
      const std::string name(option.name);
      if (!option.plugin.empty()) {
        plugins_[name] = option.plugin;
      } else if (!option.text && !option.object && !option.rows && !option.optional) {
        values_[name] = option.default_value;
      }
    }
  }

  absl::Status Take(const std::string& name, const OptionValue& value) {
    const std::size_t dot = name.find('.');
    ESPALIER_ASSIGN_OR_RETURN(const PluginOption option, Find(name, dot));
    if (dot != std::string::npos) {
      plugins_[name] = value;
      return absl::OkStatus();
    }
    if (!option.Takes(value)) return RefusedBy(kind_, plugin_.name, Refused(option, value));
    if (option.rows) {
      rows_[name] = value;
    } else if (option.object) {
      texts_[name] = {value.ObjectJson()};
    } else if (option.text) {
      texts_[name] = {value.Word()};
    } else if (!option.plugin.empty()) {
      plugins_[name] = value;
    } else if (value.IsWord()) {
      const auto place = std::ranges::find(option.words, value.Word()) - option.words.begin();
      values_[name] = static_cast<double>(place);
    } else {
      values_[name] = value.Number();
    }
    return absl::OkStatus();
  }

  absl::Status Take(const std::string& name, const std::vector<std::string>& all) {
    ESPALIER_ASSIGN_OR_RETURN(const PluginOption option, Find(name, std::string::npos));
    if (option.text && (option.repeated || all.size() <= 1)) {
      texts_[name] = all;
      return absl::OkStatus();
    }
    if (!option.text && all.size() == 1) return Take(name, OptionValue::OfText(all.front()));
    return RefusedBy(
        kind_, plugin_.name,
        absl::InvalidArgumentError(absl::StrCat("option \"", name, "\" needs ", option.Range(),
                                                ", got \"", absl::StrJoin(all, "\", \""), "\"")));
  }

  OptionValues Finish() {
    return OptionValues(std::move(values_), std::move(texts_), std::move(plugins_),
                        std::move(rows_));
  }

 private:
  // The option of that name, or the one that is the plug-in whose option it is.
  absl::StatusOr<PluginOption> Find(const std::string& name, std::size_t dot) const {
    for (const PluginOption& known : plugin_.options) {
      if (known.name != name.substr(0, dot)) continue;
      if (dot == std::string::npos || !known.plugin.empty()) return known;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        PluginPlace(kind_, plugin_.name), " has no option \"", name, "\"; ", OptionNames(plugin_)));
  }

  std::string_view kind_;
  const PluginInfo& plugin_;
  std::map<std::string, double> values_;
  TextOptions texts_;
  Options plugins_;
  Options rows_;
};

}  // namespace

absl::StatusOr<OptionValues> ReadOptions(std::string_view kind, const PluginInfo& plugin,
                                         const Options& given, const TextOptions& texts) {
  OptionReader reader(kind, plugin);
  for (const auto& [name, value] : given) ESPALIER_RETURN_IF_ERROR(reader.Take(name, value));
  for (const auto& [name, all] : texts) ESPALIER_RETURN_IF_ERROR(reader.Take(name, all));
  return reader.Finish();
}

std::vector<std::string> CutFractions(std::string_view kind, const PluginInfo& plugin,
                                      Options& options) {
  std::vector<std::string> cut;
  for (const PluginOption& option : plugin.options) {
    const auto at = options.find(std::string(option.name));
    if (!option.whole || at == options.end() || option.Takes(at->second)) continue;
    if (!at->second.IsNumber()) continue;
    const double whole = std::trunc(at->second.Number());
    if (!option.Takes(whole)) continue;
    cut.push_back(absl::StrCat(PluginPlace(kind, plugin.name), ": option \"", at->first,
                               "\" takes whole numbers, ", at->second.Number(), " counts as ",
                               whole));
    at->second = whole;
  }
  return cut;
}

absl::Status OptionNeeds(std::string_view option, const std::string& needed,
                         const OptionValue& got) {
  const std::string quote = got.IsWord() ? "\"" : "";
  return absl::InvalidArgumentError(absl::StrCat("option \"", std::string(option), "\" needs ",
                                                 needed, ", got ", quote, got.ToText(), quote));
}

absl::Status RefusedBy(std::string_view kind, std::string_view name, const absl::Status& refusal) {
  return absl::Status(refusal.code(),
                      absl::StrCat(PluginPlace(kind, name), ": ", refusal.message()));
}

}  // namespace espalier
