#include "tuner/web/view/parameter_shape.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <variant>

#include "search_spaces/formats/optuna/distribution.h"
#include "search_spaces/overloaded.h"

namespace espalier::view {

namespace {

void AddChoice(const ParameterValue& option, ParameterShape& shape) {
  std::string text = PlainText(option);
  if (!NumberOf(option)) shape.words = true;
  if (std::find(shape.choices.begin(), shape.choices.end(), text) == shape.choices.end()) {
    shape.choices.push_back(std::move(text));
  }
}

ParameterShape ShapeOf(const SearchSpace::Dimension& dimension) {
  ParameterShape shape;
  shape.name = dimension.name;
  shape.kind = "float";
  const auto within = [&shape](double low, double high, bool log) {
    shape.low = low;
    shape.high = high;
    shape.log = log;
  };
  std::visit(Overloaded{[&shape](const Choice& choice) {
                          shape.kind = "choice";
                          for (const auto& option : choice.options) AddChoice(option, shape);
                        },
                        [&](const RandInt& of) {
                          shape.kind = "int";
                          within(static_cast<double>(of.low), static_cast<double>(of.high - 1),
                                 false);
                        },
                        [&](const Uniform& of) { within(of.low, of.high, false); },
                        [&](const QUniform& of) { within(of.low, of.high, false); },
                        [&](const LogUniform& of) { within(of.low, of.high, true); },
                        [&](const QLogUniform& of) { within(of.low, of.high, true); },
                        [](const Normal&) {}, [](const QNormal&) {},
                        [&shape](const LogNormal&) { shape.log = true; },
                        [&shape](const QLogNormal&) { shape.log = true; }},
             dimension.distribution);
  return shape;
}

std::string_view KindOf(OptunaDistribution::Type type) {
  switch (type) {
    case OptunaDistribution::Type::kFloat:
      return "float";
    case OptunaDistribution::Type::kInt:
      return "int";
    case OptunaDistribution::Type::kCategorical:
      return "choice";
  }
  return "float";
}

void Widen(const OptunaDistribution& by, ParameterShape& shape) {
  if (by.type == OptunaDistribution::Type::kCategorical) {
    for (std::size_t i = 0; i < by.choices.size(); ++i) {
      AddChoice(OptunaValue(by, static_cast<double>(i)), shape);
    }
    return;
  }
  shape.low = std::min(shape.low.value_or(by.low), by.low);
  shape.high = std::max(shape.high.value_or(by.high), by.high);
  shape.log = shape.log || by.log;
}

}  // namespace

std::string PlainText(const ParameterValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  const auto* number = std::get_if<double>(&value);
  if (number == nullptr || std::isfinite(*number)) return espalier::ToJson(value);
  return std::isnan(*number) ? "NaN" : *number > 0 ? "Infinity" : "-Infinity";
}

std::vector<ParameterShape> ShapesOf(const Study& study, std::size_t most) {
  std::vector<ParameterShape> shapes;
  std::map<std::string_view, std::size_t> by_name;
  for (const auto& dimension : study.spec.space.dimensions()) {
    by_name.emplace(dimension.name, shapes.size());
    shapes.push_back(ShapeOf(dimension));
  }
  for (const Suggestion& suggestion : study.suggestions) {
    if (most-- == 0) break;
    const auto distribution = ParseOptunaDistribution(suggestion.distribution);
    if (!distribution.ok()) continue;
    const auto [at, added] = by_name.emplace(suggestion.name, shapes.size());
    if (added) {
      ParameterShape shape;
      shape.name = suggestion.name;
      shape.kind = KindOf(distribution->type);
      shapes.push_back(std::move(shape));
    }
    Widen(*distribution, shapes[at->second]);
  }
  return shapes;
}

}  // namespace espalier::view
