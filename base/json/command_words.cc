#include "base/json/command_words.h"

#include <cmath>
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/json/parse_json.h"
#include "base/nested_choice.h"

namespace espalier {
namespace {

constexpr double kExactIntegers = 9007199254740992;  // every integer below is a double

bool BeginsName(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         (static_cast<unsigned char>(c) & 0x80U) != 0;
}

bool IsOfName(char c) {
  return BeginsName(c) || (c >= '0' && c <= '9') || c == '.' || c == '/' || c == '-';
}

// The length of the name that the text begins with; 0: none.
std::size_t NameLength(std::string_view text) {
  if (text.empty() || !BeginsName(text.front())) return 0;
  std::size_t length = 1;
  while (length < text.size() && IsOfName(text[length])) ++length;
  return length;
}

// {NAME?WORD}, which is all of the word.
std::optional<std::pair<std::string_view, std::string_view>> AsFlag(std::string_view word) {
  if (word.size() < 4 || word.front() != '{' || word.back() != '}') return std::nullopt;
  const std::size_t length = NameLength(word.substr(1));
  if (length == 0 || word[1 + length] != '?') return std::nullopt;
  const std::size_t begin = 1 + length + 1;
  return std::pair{word.substr(1, length), word.substr(begin, word.size() - 1 - begin)};
}

// Calls text(c) for each character of a word that is no flag, and name(n) for each {n}, in order.
template <typename OnText, typename OnName>
void Scan(std::string_view word, OnText text, OnName name) {
  // The braces that are open: doubled ones, which doubled ones close, and single ones, so that the
  // last two of {"a": {"b": 1}} are none.
  std::vector<bool> doubled;
  for (std::size_t i = 0; i < word.size(); ++i) {
    const char c = word[i];
    const bool twice = i + 1 < word.size() && word[i + 1] == c;
    if (c == '{' && twice) {
      doubled.push_back(true);
      ++i;
    } else if (c == '{') {
      const std::size_t length = NameLength(word.substr(i + 1));
      const bool for_shells = i > 0 && word[i - 1] == '$';
      if (length > 0 && !for_shells && word.substr(i + 1 + length).starts_with('}')) {
        name(word.substr(i + 1, length));
        i += length + 1;
        continue;
      }
      doubled.push_back(false);
    } else if (c == '}') {
      const bool may_be_one = doubled.empty() || doubled.back();
      if (may_be_one && twice) ++i;
      if (!doubled.empty() && (!may_be_one || twice)) doubled.pop_back();
    }
    text(c);
  }
}

// nullopt: null, which is nothing.
std::optional<std::string> TextOf(const nlohmann::json& value) {
  if (value.is_null()) return std::nullopt;
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) {
    const double number = value.get<double>();
    if (number == std::floor(number) && std::abs(number) < kExactIntegers) {
      return absl::StrCat(static_cast<std::int64_t>(number));
    }
  }
  return value.dump();
}

class Filling {
 public:
  static absl::StatusOr<Filling> For(const TrialOfCommand& trial) {
    const nlohmann::json parameters = ParseJson(trial.parameters_json, kMaxRecordDepth);
    if (!parameters.is_object()) {
      return absl::InvalidArgumentError(
          absl::StrCat("cannot start the trial: its parameters should be one JSON object, got ",
                       std::string(trial.parameters_json.substr(0, 200))));
    }
    Filling filling;
    filling.Add("trial", absl::StrCat(trial.number));
    filling.Add("study", std::string(trial.study));
    filling.Add("seed", absl::StrCat(trial.seed));
    filling.Add("trial_dir", trial.folder.empty() ? "{trial_dir}" : std::string(trial.folder));
    filling.Add("checkpoint_dir",
                trial.checkpoints.empty() ? "{checkpoint_dir}" : std::string(trial.checkpoints));
    ForEachParameter(parameters, [&](const std::string& name, const nlohmann::json& value) {
      filling.Add(name, TextOf(value));
    });
    return filling;
  }

  // The word, or nothing where it is left out.
  absl::StatusOr<std::optional<std::string>> Fill(const std::string& word) const {
    if (const auto flag = AsFlag(word)) return FillFlag(word, flag->first, flag->second);
    std::string filled;
    bool left_out = false;
    absl::Status status;
    Scan(
        word, [&](char c) { filled.push_back(c); },
        [&](std::string_view name) {
          const absl::StatusOr<std::optional<std::string>> value = ValueOf(name, word);
          if (!value.ok()) {
            status.Update(value.status());
          } else if (*value) {
            filled.append(**value);
          } else {
            left_out = true;
          }
        });
    if (!status.ok()) return status;
    if (left_out) return std::optional<std::string>();
    if (filled.find('\0') != std::string::npos) {
      return absl::InvalidArgumentError(absl::StrCat(
          "command: \"", word, "\": the value has a zero byte, at which programs would end it"));
    }
    return std::optional(std::move(filled));
  }

 private:
  void Add(const std::string& name, std::optional<std::string> value) {
    values_[name] = std::move(value);
  }

  absl::StatusOr<std::optional<std::string>> FillFlag(const std::string& word,
                                                      std::string_view name,
                                                      std::string_view if_true) const {
    ESPALIER_ASSIGN_OR_RETURN(const std::optional<std::string> value, ValueOf(name, word));
    if (!value || *value == "false") return std::optional<std::string>();
    if (*value == "true") return std::optional(std::string(if_true));
    return absl::InvalidArgumentError(absl::StrCat("command: \"", word, "\": needs true or false, ",
                                                   std::string(name), " is ", *value));
  }

  absl::StatusOr<std::optional<std::string>> ValueOf(std::string_view name,
                                                     const std::string& word) const {
    const auto value = values_.find(name);
    if (value != values_.end()) return value->second;
    if (IsOfAnotherOption(name)) return std::optional<std::string>();
    std::vector<std::string> known;
    for (const auto& each : values_) known.push_back(each.first);
    return absl::InvalidArgumentError(
        absl::StrCat("command: \"", word, "\": the trial has no parameter \"", std::string(name),
                     "\", it has ", absl::StrJoin(known, ", "),
                     "; for the braces themselves write {{", std::string(name), "}}"));
  }

  // Whether it is below an option that was not chosen: "n/A/p", where n is "B".
  bool IsOfAnotherOption(std::string_view name) const {
    for (std::size_t slash = name.find('/'); slash != std::string_view::npos;
         slash = name.find('/', slash + 1)) {
      const auto choice = values_.find(name.substr(0, slash));
      if (choice == values_.end() || !choice->second) continue;
      const std::string_view rest = name.substr(slash + 1);
      const bool chosen =
          rest.starts_with(*choice->second) && rest.substr(choice->second->size()).starts_with('/');
      if (!chosen && rest.find('/') != std::string_view::npos) return true;
    }
    return false;
  }

  std::map<std::string, std::optional<std::string>, std::less<>> values_;
};

bool IsOneName(std::string_view word) {
  return word.size() > 2 && word.front() == '{' && word.back() == '}' &&
         NameLength(word.substr(1)) == word.size() - 2;
}

bool IsOption(std::string_view word) {
  return word.size() > 1 && word.front() == '-' && word != "--" && PlaceholdersOf(word).empty();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> FillCommand(const std::vector<std::string>& command,
                                                     const TrialOfCommand& trial) {
  ESPALIER_ASSIGN_OR_RETURN(const Filling filling, Filling::For(trial));
  std::vector<std::string> filled;
  if (!command.empty()) filled.push_back(command.front());
  for (std::size_t i = 1; i < command.size(); ++i) {
    ESPALIER_ASSIGN_OR_RETURN(std::optional<std::string> word, filling.Fill(command[i]));
    if (word) {
      filled.push_back(*std::move(word));
    } else if (i > 1 && IsOneName(command[i]) && IsOption(command[i - 1])) {
      filled.pop_back();
    }
  }
  return filled;
}

std::vector<Placeholder> PlaceholdersOf(std::string_view word) {
  if (const auto flag = AsFlag(word)) return {{std::string(flag->first), true}};
  std::vector<Placeholder> found;
  Scan(
      word, [](char) {}, [&found](std::string_view name) { found.push_back({std::string(name)}); });
  return found;
}

std::string LiteralWord(std::string_view word) {
  std::string literal;
  for (const char c : word) literal.append(c == '{' || c == '}' ? 2 : 1, c);
  return literal;
}

bool IsPlaceholderName(std::string_view name) {
  return !name.empty() && NameLength(name) == name.size();
}

}  // namespace espalier
