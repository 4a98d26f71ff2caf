#include "adapters/optuna/dashboard/python_text.h"

#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/json/python_json.h"

namespace espalier::optuna_dashboard {

namespace {

constexpr std::size_t kMaxAttributeText = 1024;  // characters

bool IsInteger(std::string_view number) {
  return number.find_first_not_of("-0123456789") == std::string_view::npos;
}

bool IsFinite(std::string_view number) {
  return number.find_first_of("NI") == std::string_view::npos;
}

// Python's str() of a number as JSON has it. Integers have no limit there.
std::string NumberText(std::string_view number) {
  if (!IsFinite(number)) {
    if (number.find('N') != std::string_view::npos) return "nan";
    return number.front() == '-' ? "-inf" : "inf";
  }
  if (IsInteger(number)) return std::string(number);
  return PythonFloat(std::strtod(std::string(number).c_str(), nullptr));
}

// repr() of a str, which stands in the text of lists and dicts.
std::string QuotedByPython(std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const char quote = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  std::string out(1, quote);
  for (const char c : text) {
    switch (c) {
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\\':
        out += "\\\\";
        break;
      default:
        if (c == quote) out += '\\';
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
          absl::StrAppendFormat(&out, "\\x%02x", static_cast<unsigned char>(c));
        } else {
          out += c;
        }
    }
  }
  return out + quote;
}

// Writes what it reads as Python's str() does.
class ToPython {
 public:
  using Ch = char;

  bool Null() { return Scalar("NoneType", "None"); }
  bool Bool(bool value) { return Scalar("bool", value ? "True" : "False"); }
  bool RawNumber(const char* text, rapidjson::SizeType size, bool) {
    const std::string_view number(text, size);
    return Scalar(IsInteger(number) ? "int" : "float", NumberText(number));
  }
  bool Int(int value) { return Scalar("int", absl::StrCat(value)); }
  bool Uint(unsigned value) { return Scalar("int", absl::StrCat(value)); }
  bool Int64(std::int64_t value) { return Scalar("int", absl::StrCat(value)); }
  bool Uint64(std::uint64_t value) { return Scalar("int", absl::StrCat(value)); }
  bool Double(double value) { return Scalar("float", PythonFloat(value)); }
  bool String(const char* text, rapidjson::SizeType size, bool) {
    const std::string_view string(text, size);
    return Scalar("str", depth_.empty() ? std::string(string) : QuotedByPython(string));
  }
  bool Key(const char* text, rapidjson::SizeType size, bool) {
    Comma();
    absl::StrAppend(&value_.text, QuotedByPython({text, size}), ": ");
    depth_.back().after_key = true;
    return true;
  }
  bool StartObject() { return Open("dict", '{'); }
  bool EndObject(rapidjson::SizeType) { return Close('}'); }
  bool StartArray() { return Open("list", '['); }
  bool EndArray(rapidjson::SizeType) { return Close(']'); }

  PythonValue take() { return std::move(value_); }

 private:
  bool Scalar(const char* type, std::string_view text) {
    Comma();
    if (depth_.empty()) value_.type = type;
    value_.text += text;
    return true;
  }
  bool Open(const char* type, char bracket) {
    Comma();
    if (depth_.empty()) value_.type = type;
    value_.text += bracket;
    depth_.emplace_back();
    return true;
  }
  bool Close(char bracket) {
    value_.text += bracket;
    depth_.pop_back();
    return true;
  }
  // Before all but the first of a list or dict; a key's value is no new one.
  void Comma() {
    if (depth_.empty()) return;
    Level& level = depth_.back();
    if (!level.after_key) {
      if (level.any) value_.text += ", ";
      level.any = true;
    }
    level.after_key = false;
  }

  struct Level {
    bool any = false;
    bool after_key = false;
  };
  PythonValue value_;
  std::vector<Level> depth_;
};

// Passes strict JSON on to a writer.
class ToStrict : public rapidjson::Writer<rapidjson::StringBuffer> {
 public:
  using Base = rapidjson::Writer<rapidjson::StringBuffer>;
  using Base::Base;

  bool RawNumber(const char* text, rapidjson::SizeType size, bool) {
    if (!IsFinite({text, size})) return Null();
    return RawValue(text, size, rapidjson::kNumberType);
  }
  bool Double(double value) { return std::isfinite(value) ? Base::Double(value) : Null(); }
};

std::string FirstCharacters(std::string text, std::size_t characters) {
  std::size_t at = 0;
  for (std::size_t n = 0; at < text.size() && n < characters; ++n) {
    ++at;
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) ++at;
  }
  text.resize(at);
  return text;
}

}  // namespace

std::string PythonFloat(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 std::chars_format::scientific)
                       .ptr;
  std::string_view text(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  std::string out(text.front() == '-' ? "-" : "");
  text.remove_prefix(out.size());
  const std::size_t e = text.find('e');
  const int exponent = std::atoi(std::string(text.substr(e + 1)).c_str());
  std::string digits(1, text.front());
  if (e > 1) digits += text.substr(2, e - 2);
  const int count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    out += digits.substr(0, 1);
    if (count > 1) out += "." + digits.substr(1);
    absl::StrAppendFormat(&out, "e%c%02d", exponent < 0 ? '-' : '+', std::abs(exponent));
  } else if (exponent < 0) {
    out += "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  } else if (count <= exponent + 1) {
    out += digits + std::string(static_cast<std::size_t>(exponent + 1 - count), '0') + ".0";
  } else {
    const std::size_t point = static_cast<std::size_t>(exponent) + 1;
    out += digits.substr(0, point) + "." + digits.substr(point);
  }
  return out;
}

PythonValue ReadPython(std::string_view json) {
  ToPython reader;
  if (ReadPythonJson(json, reader).IsError()) return {"str", std::string(json)};
  return reader.take();
}

std::string AttributeText(std::string_view json) {
  PythonValue value = ReadPython(json);
  if (value.type == "str" || value.type == "int" || value.type == "float" || value.type == "bool") {
    return std::move(value.text);
  }
  return FirstCharacters(std::string(json), kMaxAttributeText);
}

bool IsNumber(std::string_view json) {
  if (json.empty()) return false;
  const std::string_view starts = "-0123456789NI";
  return starts.find(json.front()) != std::string_view::npos;
}

std::string StrictJson(std::string_view json) {
  rapidjson::StringBuffer buffer;
  ToStrict writer(buffer);
  if (ReadPythonJson(json, writer).IsError()) return "null";
  return {buffer.GetString(), buffer.GetSize()};
}

std::string StringOr(std::string_view json, std::string otherwise) {
  PythonValue value = ReadPython(json);
  if (json.empty() || json.front() != '"' || value.type != "str") return otherwise;
  return std::move(value.text);
}

}  // namespace espalier::optuna_dashboard
