#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/clock.h"

namespace espalier::view {

// Seconds since 1970, of which no more digits are written than a moment has. (Seconds(Time) is a
// bit beside it.)
constexpr double SecondsOf(Time at) { return static_cast<double>(at.us) / 1e6; }

// Writes one JSON text from its beginning to its end, and sees to the commas. A number that JSON
// does not have (NaN, an infinity), a moment that is zero and an optional without a value are null.
class JsonText {
 public:
  void Key(std::string_view key);

  void Value(double value);
  void Value(float value);  // with as many digits as it has
  void Value(std::string_view value);
  void Value(Time value);  // seconds since 1970
  template <typename T>
  requires(std::is_integral_v<T>) void Value(T value) {
    if constexpr (std::is_same_v<T, bool>) {
      Raw(value ? "true" : "false");
    } else {
      Integer(static_cast<std::int64_t>(value));
    }
  }
  void Value(const char* value) { Value(std::string_view(value)); }
  void Value(const std::string& value) { Value(std::string_view(value)); }
  template <typename T>
  void Value(const std::optional<T>& value) {
    if (value) {
      Value(*value);
    } else {
      Null();
    }
  }
  void Null() { Raw("null"); }
  void Raw(std::string_view json);  // a whole value

  template <typename T>
  void Member(std::string_view key, const T& value) {
    Key(key);
    Value(value);
  }
  // `fill` writes what is between the brackets.
  template <typename Fill>
  void Object(Fill fill) {
    Begin('{');
    fill();
    End('}');
  }
  template <typename Fill>
  void Array(Fill fill) {
    Begin('[');
    fill();
    End(']');
  }
  // Each item as `write` writes it.
  template <typename Items, typename Write>
  void Array(const Items& items, Write write) {
    Array([&] {
      for (const auto& item : items) write(item);
    });
  }
  template <typename Items>
  void Values(std::string_view key, const Items& items) {
    Key(key);
    Array(items, [this](const auto& item) { this->Value(item); });
  }

  std::string Take() { return std::move(text_); }

 private:
  void Separate();
  void Begin(char bracket);
  void End(char bracket);
  void Integer(std::int64_t value);
  template <typename Floating>
  void Number(Floating value);

  std::string text_;
  bool first_ = true;  // what comes next is the first within its brackets, or the value of a key
};

}  // namespace espalier::view
