#include "tuner/cli/views/first_study.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/json/parse_json.h"
#include "tuner/study_file/words.h"

namespace espalier {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kNone[] = "-";  // an answer
constexpr std::string_view kValue = "VALUE";
constexpr double kManyTimes = 100;  // from which on a scale is suggested to be logarithmic

// Whether a higher value of the metric is better, by its name.
bool SoundsLikeGain(const std::string& metric) {
  const std::string name = absl::AsciiStrToLower(metric);
  for (const char* part : {"acc", "auc", "f1", "score", "reward", "bleu", "recall"}) {
    if (absl::StrContains(name, part)) return true;
  }
  return false;
}

std::optional<Json> NumberIn(std::string_view text) {
  const Json number = ParseJson<Json>(text);
  return number.is_number() ? std::optional(number) : std::nullopt;
}

// A number, true or false, else the text.
Json ValueIn(const std::string& text) {
  Json value = ParseJson<Json>(text);
  return value.is_number() || value.is_boolean() ? value : Json(text);
}

// On one line, with a blank behind commas and colons.
std::string OneLine(const Json& json) {
  std::string text;
  const auto separate = [&text] { absl::StrAppend(&text, text.empty() ? "" : ", "); };
  if (json.is_array()) {
    for (const Json& value : json) {
      separate();
      text += OneLine(value);
    }
    return absl::StrCat("[", text, "]");
  }
  if (!json.is_object()) return json.dump();
  for (const auto& [key, value] : json.items()) {
    separate();
    absl::StrAppend(&text, Json(key).dump(), ": ", OneLine(value));
  }
  return absl::StrCat("{", text, "}");
}

bool IsWordByte(char byte) { return std::isalnum(static_cast<unsigned char>(byte)) != 0; }

// How long a number is that begins there and is another one in other lines, such as that of an
// epoch; 0: there is none. That of a name, as in "f1" and "2d_loss", is part of it.
std::size_t LengthOfNumber(std::string_view line, std::size_t at) {
  const char before = at == 0 ? ' ' : line[at - 1];
  if (IsWordByte(before) || before == '_' || before == '.') return 0;
  std::size_t end = at;
  if (line[end] == '-' || line[end] == '+') ++end;
  if (end == line.size() || std::isdigit(static_cast<unsigned char>(line[end])) == 0) return 0;
  while (end < line.size() && (IsWordByte(line[end]) || line[end] == '.')) ++end;
  if (end < line.size() && line[end] == '_') return 0;
  while (line[end - 1] == '.') --end;
  const bool exponent = end + 1 < line.size() && (line[end] == '-' || line[end] == '+') &&
                        std::tolower(line[end - 1]) == 'e';
  if (exponent) end = std::min(line.find_first_not_of("0123456789", end + 1), line.size());
  return end - at;
}

class Interview {
 public:
  explicit Interview(const Conversation& with) : with_(with) {}

  absl::StatusOr<std::string> Run() {
    ESPALIER_RETURN_IF_ERROR(AskCommand());
    ESPALIER_RETURN_IF_ERROR(AskParameters());
    ESPALIER_RETURN_IF_ERROR(AskMetric());
    ESPALIER_RETURN_IF_ERROR(AskTrials());
    return Text();
  }

 private:
  absl::StatusOr<bool> AskYesNo(const std::string& question, bool suggested) {
    while (true) {
      ESPALIER_ASSIGN_OR_RETURN(std::string answer, with_.ask(question, suggested ? "yes" : "no"));
      answer = absl::AsciiStrToLower(answer);
      if (answer == "y" || answer == "yes") return true;
      if (answer == "n" || answer == "no") return false;
      with_.say("needs yes or no");
    }
  }

  absl::Status AskCommand() {
    while (true) {
      ESPALIER_ASSIGN_OR_RETURN(const std::string line,
                                with_.ask("The command of one training, as you type it", ""));
      absl::StatusOr<std::vector<std::string>> words = SplitWords(line);
      if (words.ok() && !words->empty()) {
        command_ = *std::move(words);
        return absl::OkStatus();
      }
      with_.say(words.ok() ? "needs a command, such as: python3 train.py"
                           : std::string(words.status().message()));
    }
  }

  absl::Status AskParameters() {
    with_.say("");
    while (true) {
      ESPALIER_ASSIGN_OR_RETURN(
          const std::string name,
          with_.ask(space_.empty() ? "The name of a parameter to tune"
                                   : "Another parameter (none: " + std::string(kNone) + ")",
                    space_.empty() ? "lr" : kNone));
      if (name == kNone && !space_.empty()) return absl::OkStatus();
      if (!IsPlainName(name) || space_.contains(name)) {
        with_.say(space_.contains(name) ? "needs another name: this one has been told"
                                        : "needs a name of letters, digits, '_', '-' and '.'");
        continue;
      }
      ESPALIER_ASSIGN_OR_RETURN(Json values, AskValues(name));
      space_[name] = std::move(values);
      ESPALIER_RETURN_IF_ERROR(AskPlace(name));
    }
  }

  absl::StatusOr<Json> AskValues(const std::string& name) {
    while (true) {
      ESPALIER_ASSIGN_OR_RETURN(
          const std::string answer,
          with_.ask(absl::StrCat("  ", name, ": from LOW to HIGH, or a list (16, 32, 64)"),
                    name == "lr" ? "1e-4 to 1e-1" : ""));
      if (absl::StrContains(answer, ',')) {
        Json values = Json::array();
        const std::vector<std::string> parts = absl::StrSplit(answer, ',');
        for (const std::string& part : parts) {
          const std::string value(absl::StripAsciiWhitespace(part));
          if (!value.empty()) values.push_back(ValueIn(value));
        }
        if (!values.empty()) return Json{{"_type", "choice"}, {"_value", values}};
      }
      std::vector<std::string> words = absl::StrSplit(answer, ' ', absl::SkipEmpty());
      if (words.size() == 3 && words[1] == "to") words.erase(words.begin() + 1);
      const auto low = words.size() == 2 ? NumberIn(words[0]) : std::nullopt;
      const auto high = words.size() == 2 ? NumberIn(words[1]) : std::nullopt;
      if (low && high && low->get<double>() < high->get<double>()) return AskRange(*low, *high);
      with_.say(
          "needs two numbers, the lower one first, such as 0.1 to 0.9, or values with commas");
    }
  }

  absl::StatusOr<Json> AskRange(const Json& low, const Json& high) {
    bool whole = low.is_number_integer() && high.is_number_integer();
    if (whole) {
      ESPALIER_ASSIGN_OR_RETURN(whole, AskYesNo("  whole numbers only?", true));
    }
    bool logarithmic = low.get<double>() > 0;
    if (logarithmic) {
      const bool far = high.get<double>() >= kManyTimes * low.get<double>();
      ESPALIER_ASSIGN_OR_RETURN(logarithmic, AskYesNo("  on a logarithmic scale?", far));
    }
    if (whole && logarithmic) return Json{{"_type", "qloguniform"}, {"_value", {low, high, 1}}};
    if (whole) {  // the end of randint is not in it
      const std::int64_t end = high.get<std::int64_t>() + 1;
      return Json{{"_type", "randint"}, {"_value", {low, end}}};
    }
    return Json{{"_type", logarithmic ? "loguniform" : "uniform"}, {"_value", {low, high}}};
  }

  absl::Status AskPlace(const std::string& name) {
    const std::string placeholder = absl::StrCat("{", name, "}");
    const std::string as_flag = absl::StrCat("{", name, "?--", name, "}");
    const bool flag = space_[name]["_value"] == Json::array({true, false}) ||
                      space_[name]["_value"] == Json::array({false, true});
    const auto has_it = [&](const std::string& text) {
      return absl::StrContains(text, placeholder) || absl::StrContains(text, "{" + name + "?");
    };
    if (std::any_of(command_.begin(), command_.end(), has_it)) return absl::OkStatus();
    while (true) {
      ESPALIER_ASSIGN_OR_RETURN(
          const std::string answer,
          with_.ask(absl::StrCat("  how the command is given it (", kNone,
                                 ": not at all, the program asks for it)"),
                    flag ? as_flag : absl::StrCat("--", name, " ", placeholder)));
      if (answer == kNone) return absl::OkStatus();
      const absl::StatusOr<std::vector<std::string>> words = SplitWords(answer);
      if (words.ok() && has_it(answer)) {
        command_.insert(command_.end(), words->begin(), words->end());
        return absl::OkStatus();
      }
      with_.say(words.ok() ? absl::StrCat("needs ", placeholder, ", where its value goes")
                           : std::string(words.status().message()));
    }
  }

  absl::Status AskMetric() {
    with_.say("");
    std::string name;
    while (!IsReadable(name)) {
      ESPALIER_ASSIGN_OR_RETURN(name, with_.ask("The name of the metric", "loss"));
    }
    ESPALIER_ASSIGN_OR_RETURN(const bool higher,
                              AskYesNo("  is a higher value better?", SoundsLikeGain(name)));
    metric_ = {{"name", name}, {"direction", higher ? "maximize" : "minimize"}};
    while (true) {
      ESPALIER_ASSIGN_OR_RETURN(
          const std::string line,
          with_.ask(absl::StrCat("  a line of the output that has it, with ", std::string(kValue),
                                 " in its place (", kNone, ": the program reports it)"),
                    absl::StrCat(name, "=", std::string(kValue))));
      if (line == kNone) return absl::OkStatus();
      const std::string pattern = PatternOfLine(line);
      if (!pattern.empty()) {
        metric_["from_output"] = pattern;
        return absl::OkStatus();
      }
      with_.say(absl::StrCat("needs ", std::string(kValue), " once, as in: epoch 3 loss=VALUE"));
    }
  }

  absl::Status AskTrials() {
    while (true) {
      ESPALIER_ASSIGN_OR_RETURN(const std::string answer, with_.ask("The number of trials", "20"));
      const auto number = NumberIn(answer);
      if (number && number->is_number_unsigned() && *number > 0) {
        trials_ = *number;
        return absl::OkStatus();
      }
      with_.say("needs a whole number above 0");
    }
  }

  // A parameter a line.
  std::string Text() const {
    std::string space;
    for (const auto& [name, values] : space_.items()) {
      absl::StrAppend(&space, space.empty() ? "\n" : ",\n", "    ", Json(name).dump(), ": ",
                      OneLine(values));
    }
    return absl::StrCat("{\n  \"command\": ", OneLine(command_),
                        ",\n  \"metric\": ", OneLine(metric_), ",\n  \"search_space\": {", space,
                        "\n  },\n  \"trials\": ", trials_.dump(), "\n}\n");
  }

  const Conversation& with_;
  std::vector<std::string> command_;
  Json space_ = Json::object();
  Json metric_;
  Json trials_;
};

}  // namespace

absl::StatusOr<std::string> AskForStudy(const Conversation& with) { return Interview(with).Run(); }

std::string PatternOfLine(const std::string& line) {
  const std::size_t at = line.find(kValue);
  if (at == std::string::npos || line.find(kValue, at + kValue.size()) != std::string::npos) {
    return "";
  }
  const std::string before = line.substr(0, at);
  std::string pattern;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const auto byte = static_cast<unsigned char>(line[i]);
    if (i == at) {
      pattern += R"(([-+]?[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?|[-+]?(?i:nan|inf(?:inity)?)))";
      i += kValue.size() - 1;
    } else if (const std::size_t length = LengthOfNumber(i < at ? before : line, i); length > 0) {
      pattern += R"([-+.\w]+)";
      i += length - 1;
    } else if (std::isspace(byte) != 0) {
      if (!absl::EndsWith(pattern, R"(\s+)")) pattern += R"(\s+)";
    } else {
      if (absl::StrContains(R"(\.+*?()|[]{}^$)", line[i])) pattern += '\\';
      pattern += line[i];
    }
  }
  return pattern;
}

}  // namespace espalier
