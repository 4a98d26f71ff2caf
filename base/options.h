#pragma once

#include <concepts>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

namespace espalier {

// The value of one setting, as it was given: a number, true or false, or a word. What the setting
// takes is its plug-in's to say (base/plugin.h). True equals 1, and false 0.
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

  bool IsFlag() const { return std::holds_alternative<bool>(value_); }
  bool IsWord() const { return std::holds_alternative<std::string>(value_); }

  // Of a flag 1 or 0. Not of a word.
  double Number() const { return IsFlag() ? std::get<bool>(value_) : std::get<double>(value_); }
  // Requires one.
  const std::string& Word() const { return std::get<std::string>(value_); }
  // As a command line gives it: "0.1", "true", "ipop".
  static OptionValue OfText(const std::string& text);
  std::string ToText() const;

  friend bool operator==(const OptionValue& a, const OptionValue& b) {
    if (a.IsWord() || b.IsWord()) return a.value_ == b.value_;
    return a.Number() == b.Number();
  }

 private:
  std::variant<double, bool, std::string> value_;
};

// Settings of a plug-in (sampler, pruner, policy) by name, as a study file gives them. A plug-in's
// factory refuses names it does not know and lists those it does. Where an option is itself a
// plug-in, "pruner", the settings of that one have its name before theirs: "pruner.eta".
using Options = std::map<std::string, OptionValue>;

// Settings that are texts, as a command line gives them; each may be given several times. Engines
// have some: they name what exists on other people's machines.
using TextOptions = std::map<std::string, std::vector<std::string>>;

}  // namespace espalier
