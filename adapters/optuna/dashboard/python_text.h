#pragma once

#include <string>
#include <string_view>

namespace espalier::optuna_dashboard {

// What Python makes of values: the dashboard's protocol is full of it.

// repr() of a float: the fewest digits that give the number back; "1.0", "1e-05", "inf", "nan".
std::string PythonFloat(double value);

struct PythonValue {
  std::string type;  // "str", "int", "float", "bool", "NoneType", "list", "dict"
  std::string text;  // str() of it
};

// Reads JSON as Python writes it, with NaN and Infinity. What is no JSON is taken for a str.
PythonValue ReadPython(std::string_view json);

// The value of an attribute as the dashboard shows it: strings as they are, numbers and booleans
// as str() has them, others as JSON of at most 1,024 characters.
std::string AttributeText(std::string_view json);

// Whether the attribute is a number, by which a table can be sorted.
bool IsNumber(std::string_view json);

// Strict JSON of JSON as Python writes it: null for NaN and infinities, which browsers refuse.
std::string StrictJson(std::string_view json);

// A string of JSON: what it says; nothing if the JSON is no string.
std::string StringOr(std::string_view json, std::string otherwise);

}  // namespace espalier::optuna_dashboard
