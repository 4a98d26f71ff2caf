#pragma once

#include <concepts>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace espalier {

// The value of one setting, as it was given: a number, true or false, a word, rows of numbers, or
// an object as its JSON. What the setting takes is its plug-in's to say (base/plugin.h). True
// equals 1, and false 0.
class OptionValue {
 public:
  OptionValue() = default;
  template <typename Number>
  requires(std::is_arithmetic_v<Number>) OptionValue(Number number) {
    if constexpr (std::same_as<Number, bool>) {
      value_ = number;
    } else {
      value_ = static_cast<double>(number);
    }
  }
  template <typename Text>
  requires(std::convertible_to<Text, std::string_view>) OptionValue(const Text& word)
      : value_(std::string(std::string_view(word))) {}

  // `json` is the text of one object.
  static OptionValue OfObject(std::string json) {
    OptionValue value;
    value.value_ = Object{std::move(json)};
    return value;
  }

  static OptionValue OfRows(std::vector<std::vector<double>> rows) {
    OptionValue value;
    value.value_ = std::move(rows);
    return value;
  }

  bool IsFlag() const { return std::holds_alternative<bool>(value_); }
  bool IsWord() const { return std::holds_alternative<std::string>(value_); }
  bool IsObject() const { return std::holds_alternative<Object>(value_); }
  bool IsRows() const { return std::holds_alternative<NumberRows>(value_); }
  bool IsNumber() const { return !IsWord() && !IsObject() && !IsRows(); }  // or a flag

  // Of a flag 1 or 0. Requires IsNumber.
  double Number() const { return IsFlag() ? std::get<bool>(value_) : std::get<double>(value_); }
  // Requires one.
  const std::string& Word() const { return std::get<std::string>(value_); }
  // Requires one.
  const std::string& ObjectJson() const { return std::get<Object>(value_).json; }
  // Requires some.
  const std::vector<std::vector<double>>& Rows() const { return std::get<NumberRows>(value_); }
  // As a command line gives it: "0.1", "true", "ipop".
  static OptionValue OfText(const std::string& text);
  std::string ToText() const;

  friend bool operator==(const OptionValue& a, const OptionValue& b) {
    if (!a.IsNumber() || !b.IsNumber()) return a.value_ == b.value_;
    return a.Number() == b.Number();
  }

 private:
  using NumberRows = std::vector<std::vector<double>>;
  struct Object {
    std::string json;

    friend bool operator==(const Object&, const Object&) = default;
  };

  std::variant<double, bool, std::string, Object, NumberRows> value_;
};

// Settings of a plug-in (sampler, pruner, policy) by name, as a study file gives them. A plug-in's
// factory refuses names it does not know and lists those it does. Where an option is itself a
// plug-in, "pruner", the settings of that one have its name before theirs: "pruner.eta".
using Options = std::map<std::string, OptionValue>;

// Settings that are texts, as a command line gives them; each may be given several times. Engines
// have some: they name what exists on other people's machines.
using TextOptions = std::map<std::string, std::vector<std::string>>;

}  // namespace espalier
