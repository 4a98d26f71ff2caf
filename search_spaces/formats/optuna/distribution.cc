#include "search_spaces/formats/optuna/distribution.h"

#include <rapidjson/error/en.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <variant>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/json/python_json.h"

namespace espalier {

namespace {

constexpr double kSigmas = 6;

std::string CanonicalItem(const rapidjson::Value& value) {
  if (value.IsBool()) return value.GetBool() ? "1" : "0";
  if (value.IsInt64()) return absl::StrCat(value.GetInt64());
  if (value.IsUint64()) return absl::StrCat(value.GetUint64());
  if (value.IsDouble()) {
    const double number = value.GetDouble();
    constexpr double kExact = 9007199254740992;  // 2^53
    if (number == std::floor(number) && std::abs(number) < kExact) {
      return absl::StrCat(static_cast<std::int64_t>(number));
    }
    return absl::StrFormat("%.17g", number);
  }
  return PythonJson(value);
}

// Equal texts for lists that Python's == takes for equal; NaN counts as equal to itself.
std::string Canonical(const rapidjson::Value& list) {
  struct OpenList {
    const rapidjson::Value* list;
    rapidjson::SizeType next = 0;
  };
  std::vector<OpenList> open = {{&list}};
  std::string text = "[";
  while (!open.empty()) {
    OpenList& inner = open.back();
    if (inner.next == inner.list->Size()) {
      open.pop_back();
      absl::StrAppend(&text, "]", open.empty() ? "" : ",");
      continue;
    }
    const rapidjson::Value& item = (*inner.list)[inner.next++];
    if (item.IsArray()) {
      text += "[";
      open.push_back({&item});
    } else {
      absl::StrAppend(&text, CanonicalItem(item), ",");
    }
  }
  return text;
}

// The UTF-16 code unit that is escaped at that place; 0 if there is no escape.
unsigned EscapedUnit(std::string_view text, std::size_t at) {
  const std::string_view escape = text.substr(std::min(at, text.size()), 6);
  if (escape.size() < 6 || !escape.starts_with("\\u")) return 0;
  unsigned unit = 0;
  const char* const end = escape.data() + escape.size();
  return std::from_chars(escape.data() + 2, end, unit, 16).ptr == end ? unit : 0;
}

bool IsHighSurrogate(unsigned unit) { return unit >= 0xD800 && unit < 0xDC00; }
bool IsLowSurrogate(unsigned unit) { return unit >= 0xDC00 && unit < 0xE000; }

// Python also writes escapes of surrogates that have no other half. They become those of U+FFFD.
std::string WithoutLoneSurrogates(std::string_view text) {
  std::string copy(text);
  for (std::size_t i = 0; i < copy.size(); ++i) {
    if (copy[i] != '\\') continue;
    const unsigned unit = EscapedUnit(copy, i);
    if (IsHighSurrogate(unit) && IsLowSurrogate(EscapedUnit(copy, i + 6))) {
      i += 11;
      continue;
    }
    if (IsHighSurrogate(unit) || IsLowSurrogate(unit)) copy.replace(i + 2, 4, "FFFD");
    ++i;
  }
  return copy;
}

// RapidJSON refuses integers that no double holds, also where numbers stay text. Of a long integer
// the last digits are left, with spaces before them: offsets stay as they are.
std::string WithShortIntegers(std::string_view text) {
  constexpr std::size_t kKept = 18;
  constexpr const char* kDigits = "0123456789";
  std::string copy(text);
  bool quoted = false;
  for (std::size_t i = 0; i < copy.size();) {
    if (quoted && copy[i] == '\\') {
      i += 2;
      continue;
    }
    if (copy[i] == '"') quoted = !quoted;
    const bool negative = copy[i] == '-';
    if (quoted || !(negative || absl::ascii_isdigit(static_cast<unsigned char>(copy[i])))) {
      ++i;
      continue;
    }
    const std::size_t first = i + (negative ? 1 : 0);
    const std::size_t end = std::min(copy.find_first_not_of(kDigits, first), copy.size());
    if (end - first > kKept && copy[first] != '0') {
      const std::size_t kept = end - kKept;
      copy.replace(i, kept - i, kept - i, ' ');
      if (negative) copy[kept - 1] = '-';
      copy[kept] = '1';  // 0 may not come first
    }
    i = std::min(copy.find_first_not_of("0123456789.eE+-", end), copy.size());
  }
  return copy;
}

absl::Status ParseError(std::string_view what, rapidjson::ParseErrorCode code, std::size_t offset) {
  return absl::InvalidArgumentError(absl::StrCat(std::string(what), " at byte ", offset, ": ",
                                                 rapidjson::GetParseError_En(code)));
}

struct Class {
  std::string_view name;
  OptunaDistribution::Type type;
  std::optional<bool> log;     // nullopt: an attribute says
  std::string_view step = {};  // the attribute, if there is one
};
constexpr auto kFloat = OptunaDistribution::Type::kFloat;
constexpr auto kInt = OptunaDistribution::Type::kInt;
constexpr Class kClasses[] = {
    {"FloatDistribution", kFloat, std::nullopt, "step"},
    {"IntDistribution", kInt, std::nullopt, "step"},
    {"CategoricalDistribution", OptunaDistribution::Type::kCategorical, false},
    {"UniformDistribution", kFloat, false},
    {"LogUniformDistribution", kFloat, true},
    {"DiscreteUniformDistribution", kFloat, false, "q"},
    {"IntUniformDistribution", kInt, false, "step"},
    {"IntLogUniformDistribution", kInt, true, "step"},
};

absl::Status Bad(std::string_view problem, std::string_view json) {
  return absl::InvalidArgumentError(
      absl::StrCat("distribution ", std::string(json.substr(0, 200)), ": ", std::string(problem)));
}

absl::StatusOr<double> Number(const rapidjson::Value& object, const char* key,
                              std::string_view json) {
  const auto it = object.FindMember(key);
  if (it == object.MemberEnd() || !it->value.IsNumber()) {
    return Bad(absl::StrCat("needs a number \"", key, "\""), json);
  }
  return it->value.GetDouble();
}

absl::Status ReadChoices(const rapidjson::Value& attributes, std::string_view json,
                         OptunaDistribution& distribution) {
  const auto choices = attributes.FindMember("choices");
  if (choices == attributes.MemberEnd() || !choices->value.IsArray()) {
    return Bad("needs a list \"choices\"", json);
  }
  for (const auto& choice : choices->value.GetArray()) {
    distribution.choices.push_back(PythonJson(choice));
  }
  absl::StrAppend(&distribution.kind, " ", Canonical(choices->value));
  return absl::OkStatus();
}

absl::Status ReadRange(const rapidjson::Value& attributes, const Class& known,
                       std::string_view json, OptunaDistribution& distribution) {
  ESPALIER_ASSIGN_OR_RETURN(distribution.low, Number(attributes, "low", json));
  ESPALIER_ASSIGN_OR_RETURN(distribution.high, Number(attributes, "high", json));
  const auto log = attributes.FindMember("log");
  distribution.log = known.log.value_or(log != attributes.MemberEnd() && log->value.IsBool() &&
                                        log->value.GetBool());
  const auto step = known.step.empty() ? attributes.MemberEnd()
                                       : attributes.FindMember(std::string(known.step).c_str());
  if (step != attributes.MemberEnd() && step->value.IsNumber()) {
    distribution.step = step->value.GetDouble();
  }
  absl::StrAppend(&distribution.kind, distribution.log ? " log" : "");
  return absl::OkStatus();
}

// Optuna's short form: {"type": "float", "low": 0, "high": 1}.
std::string ClassOfShortForm(const rapidjson::Document& document) {
  const auto type = document.FindMember("type");
  if (type == document.MemberEnd() || !type->value.IsString()) return "";
  const std::string_view text(type->value.GetString(), type->value.GetStringLength());
  if (text == "float") return "FloatDistribution";
  if (text == "int") return "IntDistribution";
  return text == "categorical" ? "CategoricalDistribution" : "";
}

}  // namespace

absl::StatusOr<OptunaDistribution> ParseOptunaDistribution(std::string_view json) {
  const std::string text = WithoutLoneSurrogates(json);
  rapidjson::Document document;
  if (const auto result = ParsePythonJson(text, document); result.IsError()) {
    return ParseError("a distribution is not JSON", result.Code(), result.Offset());
  }
  if (!document.IsObject()) return Bad("needs an object", json);
  OptunaDistribution distribution;
  const rapidjson::Value* attributes = &document;
  if (const auto name = document.FindMember("name");
      name != document.MemberEnd() && name->value.IsString()) {
    distribution.name = name->value.GetString();
    const auto given = document.FindMember("attributes");
    if (given == document.MemberEnd() || !given->value.IsObject()) {
      return Bad("needs an object \"attributes\"", json);
    }
    attributes = &given->value;
  } else {
    distribution.name = ClassOfShortForm(document);
  }
  const auto* known = std::find_if(std::begin(kClasses), std::end(kClasses),
                                   [&](const Class& c) { return c.name == distribution.name; });
  if (known == std::end(kClasses)) {
    return Bad("needs \"name\", one of Optuna's distribution classes", json);
  }
  distribution.type = known->type;
  distribution.kind = distribution.name;
  ESPALIER_RETURN_IF_ERROR(known->type == OptunaDistribution::Type::kCategorical
                               ? ReadChoices(*attributes, json, distribution)
                               : ReadRange(*attributes, *known, json, distribution));
  return distribution;
}

ParameterValue OptunaValue(const OptunaDistribution& distribution, double stored) {
  constexpr double kMostInt = 9.2e18;
  const bool whole = stored == std::floor(stored) && std::abs(stored) < kMostInt;
  if (distribution.type == OptunaDistribution::Type::kInt && whole) {
    return static_cast<std::int64_t>(stored);
  }
  if (distribution.type != OptunaDistribution::Type::kCategorical) return stored;
  if (!whole || stored < 0 || stored >= static_cast<double>(distribution.choices.size())) {
    return stored;
  }
  const std::string& choice = distribution.choices[static_cast<std::size_t>(stored)];
  rapidjson::Document document;
  if (ParsePythonJson(choice, document).IsError()) return choice;
  if (document.IsBool()) return document.GetBool();
  if (document.IsInt64()) return std::int64_t{document.GetInt64()};
  if (document.IsNumber()) return document.GetDouble();
  if (document.IsString()) return std::string(document.GetString(), document.GetStringLength());
  return choice;
}

namespace {

std::string Float(double low, double high, bool log) {
  return absl::StrFormat(
      R"({"name": "FloatDistribution", "attributes": {"step": null, "low": %s, "high": %s, "log": %s}})",
      espalier::ToJson(ParameterValue(low)), espalier::ToJson(ParameterValue(high)),
      log ? "true" : "false");
}

struct ToJsonOfOptuna {
  const ParameterValue& value;

  std::string operator()(const Choice& d) const {
    std::string text = R"({"name": "CategoricalDistribution", "attributes": {"choices": [)";
    for (std::size_t i = 0; i < d.options.size(); ++i) {
      absl::StrAppend(&text, i > 0 ? ", " : "", espalier::ToJson(d.options[i]));
    }
    return text + "]}}";
  }
  std::string operator()(const RandInt& d) const {
    return absl::StrFormat(
        R"({"name": "IntDistribution", "attributes": {"log": false, "step": 1, "low": %d, "high": %d}})",
        d.low, d.high - 1);
  }
  std::string operator()(const Uniform& d) const { return Float(d.low, d.high, false); }
  std::string operator()(const QUniform& d) const { return Float(d.low, d.high, false); }
  std::string operator()(const LogUniform& d) const { return Float(d.low, d.high, true); }
  std::string operator()(const QLogUniform& d) const { return Float(d.low, d.high, true); }
  std::string operator()(const Normal& d) const { return Around(d.mu, d.sigma); }
  std::string operator()(const QNormal& d) const { return Around(d.mu, d.sigma); }
  std::string operator()(const LogNormal& d) const { return AroundLog(d.mu, d.sigma); }
  std::string operator()(const QLogNormal& d) const { return AroundLog(d.mu, d.sigma); }

  std::string Around(double mu, double sigma) const {
    const double v = Stored();
    return Float(std::min(mu - kSigmas * sigma, v), std::max(mu + kSigmas * sigma, v), false);
  }
  // A rounded value may be 0, which no logarithmic scale has.
  std::string AroundLog(double mu, double sigma) const {
    const double v = Stored();
    const double most = std::numeric_limits<double>::max();
    const double high = std::max(std::min(std::exp(mu + kSigmas * sigma), most), v);
    if (v <= 0) return Float(v, high, false);
    return Float(std::min(std::exp(mu - kSigmas * sigma), v), high, true);
  }
  double Stored() const {
    if (const auto* number = std::get_if<double>(&value)) return *number;
    const auto* integer = std::get_if<std::int64_t>(&value);
    return integer == nullptr ? 0 : static_cast<double>(*integer);
  }
};

}  // namespace

std::string ToOptunaJson(const Distribution& distribution, const ParameterValue& value) {
  return std::visit(ToJsonOfOptuna{value}, distribution);
}

double ToOptunaStored(const Distribution& distribution, const ParameterValue& value) {
  if (const auto* choice = std::get_if<Choice>(&distribution)) {
    const auto at = std::find_if(choice->options.begin(), choice->options.end(),
                                 [&](const ParameterValue& o) { return SameValue(o, value); });
    return static_cast<double>(at - choice->options.begin());
  }
  return ToJsonOfOptuna{value}.Stored();
}

namespace {

rapidjson::ParseResult ReadThrough(std::string_view text) {
  rapidjson::BaseReaderHandler<> nothing;
  return ReadPythonJson(text, nothing);
}

}  // namespace

absl::Status CheckPythonJson(std::string_view text) {
  std::string copy;
  if (text.find("\\u") != std::string_view::npos) {
    copy = WithoutLoneSurrogates(text);
    text = copy;
  }
  rapidjson::ParseResult result = ReadThrough(text);
  if (result.Code() == rapidjson::kParseErrorNumberTooBig) {
    result = ReadThrough(WithShortIntegers(text));
  }
  if (!result.IsError()) return absl::OkStatus();
  return ParseError("not JSON", result.Code(), result.Offset());
}

}  // namespace espalier
