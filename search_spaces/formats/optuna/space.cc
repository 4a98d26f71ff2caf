#include "search_spaces/formats/optuna/space.h"

#include <cmath>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "search_spaces/formats/optuna/distribution.h"
#include "search_spaces/json_places.h"
#include "search_spaces/json_text.h"
#include "search_spaces/overloaded.h"

namespace espalier {
namespace {

using search_spaces_json::Json;

// A distribution of the other format, or why there is none.
template <typename Result>
struct Converted {
  std::optional<Result> result;
  std::string text;  // of the flaw, or a note beside the result
};

constexpr char kEnds[] =
    "NNI draws the two ends of a quniform half as often as other values, Optuna as often";

bool IsMultiple(double x, double step) {
  return std::abs(x / step - std::nearbyint(x / step)) < 1e-9;
}

using FromOptuna = Converted<Distribution>;

FromOptuna FromCategories(const OptunaDistribution& optuna) {
  Choice choice;
  for (const std::string& json : optuna.choices) {
    absl::StatusOr<ParameterValue> value = ParameterValueFromJson(json);
    if (!value.ok()) {
      return {std::nullopt, absl::StrCat("choice: ", value.status().message())};
    }
    choice.options.push_back(*std::move(value));
  }
  return {std::move(choice), ""};
}

// The values from low to high in steps, as options in their order.
FromOptuna FromSteps(const OptunaDistribution& optuna, double step) {
  const double steps = std::floor((optuna.high - optuna.low) / step + 1e-8);
  if (!(step > 0) || !(steps < static_cast<double>(kMaxOptions))) {
    return {std::nullopt, absl::StrCat("needs a step that gives at most ", kMaxOptions,
                                       " values, got ", ToDisplay(step))};
  }
  Choice choice;
  for (int i = 0; i <= static_cast<int>(steps); ++i) {
    const double value = optuna.low + i * step;
    if (optuna.type == OptunaDistribution::Type::kInt) {
      choice.options.emplace_back(static_cast<std::int64_t>(value));
    } else {
      choice.options.emplace_back(value);
    }
  }
  return {std::move(choice), ""};
}

FromOptuna FromIntegers(const OptunaDistribution& optuna) {
  constexpr double kExact = 9007199254740992;  // 2^53
  const double step = optuna.step.value_or(1);
  const auto whole = [](double x) { return x == std::floor(x) && std::abs(x) < kExact; };
  if (!whole(optuna.low) || !whole(optuna.high) || !whole(step)) {
    return {std::nullopt, "needs whole numbers below 2^53"};
  }
  if (optuna.log) {
    return {std::nullopt,
            absl::StrCat("NNI's format has no integers on a logarithmic scale; the nearest is "
                         "qloguniform [",
                         ToDisplay(optuna.low), ", ", ToDisplay(optuna.high),
                         ", 1], whose values are floating-point numbers")};
  }
  if (step != 1) return FromSteps(optuna, step);
  return {
      RandInt{static_cast<std::int64_t>(optuna.low), static_cast<std::int64_t>(optuna.high) + 1},
      ""};
}

FromOptuna FromFloats(const OptunaDistribution& optuna) {
  if (optuna.low == optuna.high) return {Choice{{optuna.low}}, ""};
  if (optuna.log) return {LogUniform{optuna.low, optuna.high}, ""};
  if (!optuna.step) return {Uniform{optuna.low, optuna.high}, ""};
  const double step = *optuna.step;
  if (step > 0 && IsMultiple(optuna.low, step) && IsMultiple(optuna.high, step)) {
    return {QUniform{optuna.low, optuna.high, step}, kEnds};
  }
  return FromSteps(optuna, step);
}

FromOptuna Convert(const OptunaDistribution& optuna) {
  switch (optuna.type) {
    case OptunaDistribution::Type::kCategorical:
      return FromCategories(optuna);
    case OptunaDistribution::Type::kInt:
      return FromIntegers(optuna);
    case OptunaDistribution::Type::kFloat:
      break;
  }
  return FromFloats(optuna);
}

using OptunaJson = Converted<Json>;

Json MakeClass(const char* name, Json attributes) {
  return Json::object({{"name", name}, {"attributes", std::move(attributes)}});
}

Json FloatClass(double low, double high, bool log, Json step = nullptr) {
  return MakeClass(
      "FloatDistribution",
      Json::object({{"step", std::move(step)}, {"low", low}, {"high", high}, {"log", log}}));
}

struct ToOptunaClass {
  OptunaJson operator()(const Choice& d) const {
    if (d.nested) {
      return {std::nullopt,
              "is a nested choice, and Optuna's distributions have no conditions: suggest what "
              "depends on it within an if of the objective"};
    }
    Json choices = Json::array();
    for (const ParameterValue& option : d.options) {
      choices.push_back(search_spaces_json::FromParameterValue(option));
    }
    return {MakeClass("CategoricalDistribution", Json::object({{"choices", std::move(choices)}})),
            ""};
  }
  OptunaJson operator()(const RandInt& d) const {
    return {MakeClass(
                "IntDistribution",
                Json::object({{"log", false}, {"step", 1}, {"low", d.low}, {"high", d.high - 1}})),
            ""};
  }
  OptunaJson operator()(const Uniform& d) const { return {FloatClass(d.low, d.high, false), ""}; }
  OptunaJson operator()(const LogUniform& d) const { return {FloatClass(d.low, d.high, true), ""}; }
  OptunaJson operator()(const QUniform& d) const {
    if (IsMultiple(d.low, d.q) && IsMultiple(d.high, d.q)) {
      return {FloatClass(d.low, d.high, false, d.q), kEnds};
    }
    return {std::nullopt, "Optuna's steps begin at low and end at high: make both multiples of q"};
  }
  OptunaJson operator()(const QLogUniform&) const {
    return {std::nullopt, "Optuna has no steps on a logarithmic scale: use loguniform, or randint"};
  }
  template <typename Bell>
  OptunaJson operator()(const Bell&) const {
    return {std::nullopt,
            "Optuna has no normal distributions: use uniform or loguniform over two or three "
            "standard deviations"};
  }
};

}  // namespace

bool LooksLikeOptuna(std::string_view document) {
  const absl::StatusOr<Json> parsed = search_spaces_json::Parse("search space", document);
  if (!parsed.ok() || !parsed->is_object() || parsed->empty()) return false;
  const Json& first = parsed->front();
  return first.is_object() && !first.contains("_type") &&
         (first.contains("attributes") || first.contains("type"));
}

OptunaReading ReadOptunaSpace(std::string_view document) {
  OptunaReading result;
  std::vector<SpaceFlaw>& flaws = result.reading.flaws;
  const absl::StatusOr<Json> parsed = search_spaces_json::Parse("search space", document);
  if (!parsed.ok() || !parsed->is_object()) {
    flaws.push_back({"", 0,
                     parsed.ok() ? "search space: expected a JSON object of distributions"
                                 : std::string(parsed.status().message())});
    return result;
  }
  std::vector<SearchSpace::Dimension> dimensions;
  const auto bad = [&](const std::string& name, std::string_view what) {
    const std::string pointer = PointerTo("", name);
    flaws.push_back({pointer, JsonPlaces(document).LineOf(pointer),
                     absl::StrCat("search space \"", name, "\": ", std::string(what))});
  };
  for (const auto& [name, value] : parsed->items()) {
    const auto optuna = ParseOptunaDistribution(value.dump());
    if (!optuna.ok()) {
      bad(name, std::string(optuna.status().message()));
      continue;
    }
    auto [distribution, text] = Convert(*optuna);
    if (!distribution) {
      bad(name, text);
    } else if (const auto flaw = FlawOf(*distribution)) {
      bad(name, flaw->what);
    } else {
      if (!text.empty()) result.notes.push_back(absl::StrCat("\"", name, "\": ", text));
      dimensions.push_back({name, *std::move(distribution)});
    }
  }
  if (!flaws.empty()) return result;
  absl::StatusOr<SearchSpace> space = SearchSpace::Make(std::move(dimensions));
  if (space.ok()) {
    result.reading.space = *std::move(space);
  } else {
    flaws.push_back({"", 0, std::string(space.status().message())});
  }
  return result;
}

OptunaText ToOptuna(const SearchSpace& space) {
  OptunaText result;
  Json object = Json::object();
  for (const auto& [name, distribution, condition] : space.dimensions()) {
    auto [json, text] = std::visit(ToOptunaClass{}, distribution);
    if (condition) {
      json.reset();
      text = "depends on a nested choice, and Optuna's distributions have no conditions";
    }
    if (json) {
      if (!text.empty()) result.notes.push_back(absl::StrCat("\"", name, "\": ", text));
      object[name] = *std::move(json);
    } else {
      result.flaws.push_back(
          absl::StrCat("search space \"", name, "\" (", Describe(distribution), "): ", text));
    }
  }
  if (result.flaws.empty()) {
    result.json = object.dump(2, ' ', false, Json::error_handler_t::replace);
  }
  return result;
}

}  // namespace espalier
