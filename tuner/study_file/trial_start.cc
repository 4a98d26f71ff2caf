#include "tuner/study_file/trial_start.h"

#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/json/parse_json.h"
#include "search_spaces/json_text.h"
#include "tuner/core/state/refusals.h"
#include "tuner/study_file/words.h"

namespace espalier {
namespace {

using search_spaces_json::Json;
using search_spaces_json::Quote;

constexpr std::size_t kMaxModules = 64;
constexpr std::size_t kMaxModuleName_bytes = 128;

absl::Status Bad(const std::string& label, const std::string& key, const std::string& problem) {
  return absl::InvalidArgumentError(absl::StrCat(label, ": \"", key, "\": ", problem));
}

absl::Status Needs(const std::string& label, const std::string& key, const std::string& what,
                   const Json& got) {
  return Bad(label, key, absl::StrCat("needs ", what, ", got ", Quote(got)));
}

// As an import statement has it: identifiers with dots between them.
bool IsModuleName(std::string_view text) {
  if (text.size() > kMaxModuleName_bytes) return false;
  bool begins = true;  // an identifier
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool letter = absl::ascii_isalpha(byte) || c == '_';
    const bool follows = absl::ascii_isdigit(byte) || c == '.';
    if (!letter && (begins || !follows)) return false;
    begins = c == '.';
  }
  return !begins;
}

}  // namespace

absl::StatusOr<std::map<std::string, std::string>> ReadEnvironment(const std::string& label,
                                                                   const std::string& json) {
  const Json value = ParseJson<Json>(json, kMaxRecordDepth);
  if (!value.is_object()) return Needs(label, "env", "an object of strings or numbers", value);
  if (value.size() > kMaxVariables) {
    return Bad(label, "env",
               absl::StrCat("needs at most ", kMaxVariables, " variables, got ", value.size()));
  }
  std::map<std::string, std::string> environment;
  for (const auto& [name, setting] : value.items()) {
    if (!IsVariableName(name)) {
      return Bad(
          label, "env",
          absl::StrCat("a variable's name is not empty and has no \"=\", got ", Quote(name)));
    }
    const std::string place = absl::StrCat("env.", name);
    if (!setting.is_string() && !setting.is_number()) {
      return Needs(label, place, "a string or a number", setting);
    }
    std::string text = setting.is_string() ? setting.get<std::string>() : setting.dump();
    if (HasNul(text)) return Needs(label, place, "a string without a zero byte", setting);
    environment[name] = std::move(text);
  }
  return environment;
}

absl::StatusOr<std::optional<std::vector<std::string>>> ReadPreload(const std::string& label,
                                                                    const std::string& json) {
  const Json value = ParseJson<Json>(json, kMaxRecordDepth);
  if (value == false) return std::nullopt;
  if (!value.is_array()) {
    return Needs(label, "preload", "a list of modules like [\"transformers\"], or false", value);
  }
  if (value.size() > kMaxModules) {
    return Bad(label, "preload",
               absl::StrCat("needs at most ", kMaxModules, " modules, got ", value.size()));
  }
  std::vector<std::string> modules;
  for (const Json& module : value) {
    if (!module.is_string() || !IsModuleName(module.get<std::string>())) {
      return Needs(label, "preload", "names of modules like \"transformers\"", module);
    }
    modules.push_back(module.get<std::string>());
  }
  return modules;
}

}  // namespace espalier
