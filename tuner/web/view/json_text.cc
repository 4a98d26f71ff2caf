#include "tuner/web/view/json_text.h"

#include <array>
#include <charconv>
#include <cmath>

#include "tuner/api/json.h"

namespace espalier::view {

namespace {

constexpr double kWhole = 0x1p53;  // up to here a double holds each whole number

}  // namespace

void JsonText::Separate() {
  if (!first_) text_ += ',';
  first_ = false;
}

void JsonText::Key(std::string_view key) {
  Separate();
  text_ += QuoteJson(key);
  text_ += ':';
  first_ = true;
}

template <typename Floating>
void JsonText::Number(Floating value) {
  if (!std::isfinite(value)) return Null();
  if (std::abs(value) < kWhole && value == std::floor(value)) {
    return Integer(static_cast<std::int64_t>(value));
  }
  Separate();
  std::array<char, 32> digits;
  const auto end = std::to_chars(digits.begin(), digits.end(), value).ptr;
  text_.append(digits.data(), end);
}

void JsonText::Value(double value) { Number(value); }
void JsonText::Value(float value) { Number(value); }

void JsonText::Value(std::string_view value) {
  Separate();
  text_ += QuoteJson(value);
}

void JsonText::Value(Time value) {
  if (value == Time{}) return Null();
  Value(SecondsOf(value));
}

void JsonText::Raw(std::string_view json) {
  Separate();
  text_ += json;
}

void JsonText::Integer(std::int64_t value) {
  Separate();
  std::array<char, 24> digits;
  const auto end = std::to_chars(digits.begin(), digits.end(), value).ptr;
  text_.append(digits.data(), end);
}

void JsonText::Begin(char bracket) {
  Separate();
  text_ += bracket;
  first_ = true;
}

void JsonText::End(char bracket) {
  text_ += bracket;
  first_ = false;
}

}  // namespace espalier::view
