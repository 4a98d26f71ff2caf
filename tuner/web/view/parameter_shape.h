#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/core/state/study.h"

namespace espalier::view {

// The value as a word: a text without quotes, all else as JSON has it, with every digit.
std::string PlainText(const ParameterValue& value);

// What an axis needs to know of a parameter.
struct ParameterShape {
  std::string name;
  std::string_view kind;            // "float", "int" or "choice"
  std::optional<double> low, high;  // none: it has no bound
  bool log = false;
  std::vector<std::string> choices;  // as people read them
  bool words = false;                // a choice one of whose options is no number
};

// Those of the study's search space; and where clients have drawn by distributions of their own, of
// these, with the bounds and choices of all that have the same name. Programs may draw each value
// from another one: the first `most` are looked at, which takes a microsecond or two each.
std::vector<ParameterShape> ShapesOf(const Study& study, std::size_t most);

}  // namespace espalier::view
