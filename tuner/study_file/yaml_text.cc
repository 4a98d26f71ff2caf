#include "tuner/study_file/yaml_text.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/json/parse_json.h"
#include "search_spaces/json_text.h"
#include "tuner/study_file/wording.h"

namespace espalier {
namespace {

using search_spaces_json::Json;

std::string_view TakeDigits(std::string_view& text) {
  const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string_view digits = text.substr(0, end);
  text.remove_prefix(end);
  return digits;
}

// As JSON writes it, of what YAML's core schema takes for a number (10.3.2): JSON has no plus sign,
// and digits on both sides of a point. nullopt: it is a text.
std::optional<std::string> NumberInJson(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const std::string_view whole = TakeDigits(text);
  const bool point = text.starts_with('.');
  if (point) text.remove_prefix(1);
  const std::string_view fraction = point ? TakeDigits(text) : std::string_view();
  if (whole.empty() && fraction.empty()) return std::nullopt;
  std::string json = absl::StrCat(negative ? "-" : "", whole.empty() ? "0" : std::string(whole));
  if (point) absl::StrAppend(&json, ".", fraction.empty() ? "0" : std::string(fraction));
  if (text.empty()) return json;
  if (text.front() != 'e' && text.front() != 'E') return std::nullopt;
  text.remove_prefix(1);
  absl::StrAppend(&json, "e", text.starts_with('-') ? "-" : "");
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  const std::string_view exponent = TakeDigits(text);
  if (exponent.empty() || !text.empty()) return std::nullopt;
  return json + std::string(exponent);
}

// 0123 and 0o17 are 83 and 15 to some readers, 0x1F is 31: others see texts.
bool ReadsInTwoWays(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  if (text.size() < 2 || text.front() != '0') return false;
  text.remove_prefix(1);
  const char kind = static_cast<char>(std::tolower(static_cast<unsigned char>(text.front())));
  const std::string_view digits = text.substr(1);
  const auto only = [digits](const char* of) {
    return !digits.empty() && digits.find_first_not_of(of) == digits.npos;
  };
  if (kind == 'x') return only("0123456789abcdefABCDEF");
  if (kind == 'o') return only("01234567");
  if (kind == 'b') return only("01");
  return kind >= '0' && kind <= '9' && NumberInJson(text).has_value();
}

bool IsInfiniteOrNan(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return absl::EqualsIgnoreCase(std::string(text), ".inf") ||
         absl::EqualsIgnoreCase(std::string(text), ".nan");
}

// Other words, such as no and on, are texts.
const char* BooleanInJson(std::string_view text) {
  if (text == "true" || text == "True" || text == "TRUE") return "true";
  return text == "false" || text == "False" || text == "FALSE" ? "false" : nullptr;
}

// Writes JSON as the parser tells of the document. The first error stays, and nothing is written
// after it.
class JsonWriter final : public YAML::EventHandler {
 public:
  JsonWriter(std::string_view yaml, std::string label) : yaml_(yaml), label_(std::move(label)) {}

  absl::StatusOr<std::string> Written() const {
    if (!error_.ok()) return error_;
    return json_;
  }

  bool has_api_version() const { return has_api_version_; }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnAnchor(const YAML::Mark& mark, const std::string& name) override {
    Refuse(mark, absl::StrCat("anchors have no place in a study file, got &", name));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    Pass("");
    Refuse(mark, "aliases (*NAME) have no place in a study file: write the value again");
  }

  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override {
    Pass("");
    if (ExpectsKey()) return Refuse(mark, "needs the name of a key, got nothing");
    Value(mark, "null");
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                const std::string& value) override {
    Pass(value);
    const bool plain = tag == "?";
    if (!CheckTag(mark, tag)) return;
    if (!Writable(value)) return Refuse(mark, "needs UTF-8");
    if (ExpectsKey()) return Key(mark, value);
    if (!plain) return Value(mark, Json(value).dump());
    if (const char* boolean = BooleanInJson(value)) return Value(mark, boolean);
    if (IsInfiniteOrNan(value)) {
      return Refuse(
          mark, absl::StrCat("needs a finite number, got ", value, "; a text stands in quotes"));
    }
    if (ReadsInTwoWays(value)) {
      return Refuse(mark, absl::StrCat(value,
                                       " is read as different numbers by different readers: "
                                       "write it in decimal, or in quotes if it is a text"));
    }
    const std::optional<std::string> number = NumberInJson(value);
    if (!number) return Value(mark, Json(value).dump());
    if (ParseJson<Json>(*number).is_discarded()) {
      return Refuse(mark, absl::StrCat("needs a number that a double can hold, got ", value));
    }
    Value(mark, *number);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                       YAML::EmitterStyle::value style) override {
    Pass("");
    ++depth_;
    Begin(mark, tag, style, '[');
  }
  void OnSequenceEnd() override {
    --depth_;
    End(']');
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                  YAML::EmitterStyle::value style) override {
    Pass("");
    if (depth_ == 0) key_follows_ = true;
    ++depth_;
    Begin(mark, tag, style, '{');
  }
  void OnMapEnd() override {
    --depth_;
    End('}');
  }

 private:
  // A list or an object that has begun.
  struct Open {
    bool object;
    bool at_key;
    std::size_t entries = 0;
    std::map<std::string, int> keys{};  // with their lines
  };

  // Takes note of the outermost object's keys, also after an error.
  void Pass(std::string_view scalar) {
    if (depth_ != 1) return;
    if (key_follows_ == true && scalar == "apiVersion") has_api_version_ = true;
    if (key_follows_) key_follows_ = !*key_follows_;
  }

  bool ExpectsKey() const { return !open_.empty() && open_.back().at_key; }

  void Refuse(const YAML::Mark& mark, std::string_view why) {
    if (!error_.ok()) return;
    error_ = absl::InvalidArgumentError(
        absl::StrCat(label_, ": line ", mark.line + 1, ": ", std::string(why)));
  }

  bool CheckTag(const YAML::Mark& mark, const std::string& tag) {
    if (tag.empty() || tag == "?" || tag == "!") return true;
    Refuse(mark, absl::StrCat("tags have no place in a study file, got ", tag));
    return false;
  }

  void Separate(const YAML::Mark& mark) {
    if (!open_.empty()) {
      Open& in = open_.back();
      if (in.object && !in.at_key) {
        json_ += ':';
      } else if (in.entries++ > 0) {
        json_ += ',';
      }
      if (in.object) in.at_key = !in.at_key;
    }
    for (; line_ < mark.line; ++line_) json_ += '\n';
  }

  void Key(const YAML::Mark& mark, const std::string& name) {
    if (!error_.ok()) return;
    const auto [before, is_new] = open_.back().keys.emplace(name, mark.line + 1);
    if (!is_new) {
      return Refuse(mark,
                    absl::StrCat("the key ", Json(name).dump(),
                                 " is given twice, for the first time in line ", before->second));
    }
    Separate(mark);
    json_ += Json(name).dump();
  }

  void Value(const YAML::Mark& mark, const std::string& json) {
    if (!error_.ok()) return;
    Separate(mark);
    json_ += json;
  }

  void Begin(const YAML::Mark& mark, const std::string& tag, YAML::EmitterStyle::value style,
             char bracket) {
    if (!CheckTag(mark, tag)) return;
    if (ExpectsKey()) {
      return Refuse(mark, bracket == '{' ? "needs the name of a key, got an object; what begins "
                                           "with { stands in quotes if it is a text"
                                         : "needs the name of a key, got a list");
    }
    if (open_.size() >= static_cast<std::size_t>(kMaxJsonDepth)) {
      return Refuse(mark, absl::StrCat("nests deeper than ", kMaxJsonDepth, " levels"));
    }
    if (!error_.ok()) return;
    if (bracket == '{' && style == YAML::EmitterStyle::Flow) RefuseUnquoted(mark);
    if (!error_.ok()) return;
    Separate(mark);
    json_ += bracket;
    open_.push_back({.object = bracket == '{', .at_key = bracket == '{'});
  }

  // {lr} is an object to YAML, whose key lr has no value. Whoever writes it means the text.
  void RefuseUnquoted(const YAML::Mark& mark) {
    const std::string_view from =
        yaml_.substr(std::min(static_cast<std::size_t>(mark.pos), yaml_.size()));
    const std::size_t end = from.find('}');
    if (!from.starts_with('{') || end == std::string_view::npos) return;
    const std::string_view words = from.substr(0, end + 1);
    if (words.find_first_of(":,\n\"'", 1) != std::string_view::npos || end < 2) return;
    Refuse(mark, absl::StrCat("needs quotes: \"", std::string(words),
                              "\" (without them it is an "
                              "object to YAML)"));
  }

  void End(char bracket) {
    if (!error_.ok()) return;
    json_ += bracket;
    open_.pop_back();
  }

  const std::string_view yaml_;
  const std::string label_;
  std::string json_;
  int line_ = 0;
  std::vector<Open> open_;
  absl::Status error_;
  int depth_ = 0;
  std::optional<bool> key_follows_;  // in the outermost object; else absent
  bool has_api_version_ = false;
};

}  // namespace

bool IsYamlFile(std::string_view path) { return path.ends_with(".yaml") || path.ends_with(".yml"); }

absl::Status CheckYamlText(std::string_view yaml, const std::string& label) {
  std::size_t line = 1;
  for (const char c : yaml) {
    if (c == '\n') ++line;
    const bool printable = static_cast<unsigned char>(c) >= ' ' && c != '\x7f';
    if (printable || c == '\t' || c == '\n' || c == '\r') continue;
    return absl::InvalidArgumentError(
        absl::StrCat(label, ": line ", line, ": needs a text, got the byte ", static_cast<int>(c)));
  }
  return absl::OkStatus();
}

YamlDocument ReadYaml(std::string_view yaml, const std::string& label) {
  if (absl::Status text = CheckYamlText(yaml, label); !text.ok()) return {std::move(text)};
  YamlDocument read{std::string()};
  const auto fail = [&](std::string_view why) {
    read.json = absl::InvalidArgumentError(absl::StrCat(label, ": ", std::string(why)));
  };
  try {
    std::istringstream text{std::string(yaml)};
    YAML::Parser parser(text);
    JsonWriter writer(yaml, label);
    if (!parser.HandleNextDocument(writer)) {
      fail("is empty");
      return read;
    }
    read = {writer.Written(), writer.has_api_version()};
    JsonWriter rest(yaml, label);
    if (read.json.ok() && parser.HandleNextDocument(rest)) {
      fail("needs one YAML document, got several");
    }
  } catch (const YAML::Exception& error) {
    fail(absl::StrCat("line ", error.mark.line + 1, ": ", error.msg));
  }
  return read;
}

absl::StatusOr<std::string> JsonOfYaml(std::string_view yaml, const std::string& label) {
  return ReadYaml(yaml, label).json;
}

}  // namespace espalier
