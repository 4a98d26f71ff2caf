#include "tuner/api/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/json/parse_json.h"
#include "google/protobuf/descriptor.h"
#include "tuner.pb.h"

namespace espalier {

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Bytes of the UTF-8 character that the text begins with; 0: none does.
std::size_t CharacterBytes(std::string_view text) {
  const auto byte = [text](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  // Neither longer than needed, nor half a surrogate pair, nor past the last character.
  const bool second_fits = (first != 0xe0 || byte(1) >= 0xa0) &&
                           (first != 0xed || byte(1) < 0xa0) &&
                           (first != 0xf0 || byte(1) >= 0x90) && (first != 0xf4 || byte(1) < 0x90);
  if (first < 0xc2 || first > 0xf4 || !second_fits) return 0;
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  return bytes;
}

// What is no UTF-8, as it may stand in a message that quotes bad input, becomes U+FFFD.
void AppendString(std::string_view text, std::string& out) {
  constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80) {
      const std::size_t bytes = CharacterBytes(text.substr(i));
      out += bytes == 0 ? std::string_view("\\ufffd") : text.substr(i, bytes);
      i += bytes == 0 ? 0 : bytes - 1;
      continue;
    }
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += "\\u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  out += '"';
}

// As few digits as tell it from others of its type.
template <typename Floating>
void AppendFloating(Floating value, std::string& out) {
  if (std::isnan(value)) {
    out += "\"NaN\"";
  } else if (std::isinf(value)) {
    out += value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  } else {
    char text[32];
    const auto end = std::to_chars(text, text + sizeof(text), value).ptr;
    out.append(text, end);
  }
}

// What JSON does not know, as Python's NaN, stays a text, and so does what nests too deep for
// readers.
void AppendJson(const std::string& text, std::string& out) {
  if (text.empty()) {
    out += "null";
  } else if (!ParseJson(text).is_discarded()) {
    out += text;
  } else {
    AppendString(text, out);
  }
}

void AppendMessage(const Message& message, std::string& out);

// One value: element `index` of a repeated field, or the field itself where index is negative.
void AppendValue(const Message& message, const FieldDescriptor& field, int index,
                 std::string& out) {
  const Reflection& in = *message.GetReflection();
  const bool repeated = index >= 0;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      absl::StrAppend(&out, repeated ? in.GetRepeatedInt32(message, &field, index)
                                     : in.GetInt32(message, &field));
      return;
    case FieldDescriptor::CPPTYPE_INT64:
      absl::StrAppend(&out, repeated ? in.GetRepeatedInt64(message, &field, index)
                                     : in.GetInt64(message, &field));
      return;
    case FieldDescriptor::CPPTYPE_UINT32:
      absl::StrAppend(&out, repeated ? in.GetRepeatedUInt32(message, &field, index)
                                     : in.GetUInt32(message, &field));
      return;
    case FieldDescriptor::CPPTYPE_UINT64:
      absl::StrAppend(&out, repeated ? in.GetRepeatedUInt64(message, &field, index)
                                     : in.GetUInt64(message, &field));
      return;
    case FieldDescriptor::CPPTYPE_DOUBLE:
      AppendFloating(
          repeated ? in.GetRepeatedDouble(message, &field, index) : in.GetDouble(message, &field),
          out);
      return;
    case FieldDescriptor::CPPTYPE_FLOAT:
      AppendFloating(
          repeated ? in.GetRepeatedFloat(message, &field, index) : in.GetFloat(message, &field),
          out);
      return;
    case FieldDescriptor::CPPTYPE_BOOL:
      out += (repeated ? in.GetRepeatedBool(message, &field, index) : in.GetBool(message, &field))
                 ? "true"
                 : "false";
      return;
    case FieldDescriptor::CPPTYPE_ENUM:
      AppendString(
          (repeated ? in.GetRepeatedEnum(message, &field, index) : in.GetEnum(message, &field))
              ->name(),
          out);
      return;
    case FieldDescriptor::CPPTYPE_STRING:
      AppendString(
          repeated ? in.GetRepeatedString(message, &field, index) : in.GetString(message, &field),
          out);
      return;
    case FieldDescriptor::CPPTYPE_MESSAGE:
      AppendMessage(
          repeated ? in.GetRepeatedMessage(message, &field, index) : in.GetMessage(message, &field),
          out);
      return;
  }
}

// Map entries come in no order of their own; by key, the same message gives the same text.
void AppendEntries(const Message& message, const FieldDescriptor& field, std::string& out) {
  const FieldDescriptor& key = *field.message_type()->map_key();
  const FieldDescriptor& value = *field.message_type()->map_value();
  std::vector<std::pair<std::string, std::string>> entries;
  const int size = message.GetReflection()->FieldSize(message, &field);
  for (int i = 0; i < size; ++i) {
    const Message& entry = message.GetReflection()->GetRepeatedMessage(message, &field, i);
    std::pair<std::string, std::string> texts;
    AppendValue(entry, key, -1, texts.first);
    if (texts.first.front() != '"') texts.first = absl::StrCat("\"", texts.first, "\"");
    if (field.options().GetExtension(v1::json_text)) {
      AppendJson(entry.GetReflection()->GetString(entry, &value), texts.second);
    } else {
      AppendValue(entry, value, -1, texts.second);
    }
    entries.push_back(std::move(texts));
  }
  std::sort(entries.begin(), entries.end());
  for (const auto& [key_text, value_text] : entries) {
    if (out.back() != '{') out += ',';
    absl::StrAppend(&out, key_text, ":", value_text);
  }
}

void AppendField(const Message& message, const FieldDescriptor& field, std::string& out) {
  const Reflection& in = *message.GetReflection();
  if (field.is_map()) {
    out += '{';
    AppendEntries(message, field, out);
    out += '}';
  } else if (field.is_repeated()) {
    out += '[';
    const int size = in.FieldSize(message, &field);
    for (int i = 0; i < size; ++i) {
      if (i > 0) out += ',';
      AppendValue(message, field, i, out);
    }
    out += ']';
  } else if (field.has_presence() && !in.HasField(message, &field)) {
    out += "null";
  } else if (field.options().GetExtension(v1::json_text)) {
    AppendJson(in.GetString(message, &field), out);
  } else {
    AppendValue(message, field, -1, out);
  }
}

void AppendMessage(const Message& message, std::string& out) {
  out += '{';
  const auto* descriptor = message.GetDescriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    if (descriptor->field(i)->options().GetExtension(v1::json_inline)) {
      AppendEntries(message, *descriptor->field(i), out);
      continue;
    }
    if (out.back() != '{') out += ',';
    AppendString(descriptor->field(i)->name(), out);
    out += ':';
    AppendField(message, *descriptor->field(i), out);
  }
  out += '}';
}

}  // namespace

std::string MessageToJson(const Message& message) {
  std::string out;
  AppendMessage(message, out);
  return out;
}

std::string JsonOrQuoted(const std::string& text) {
  std::string out;
  AppendJson(text, out);
  return out;
}

std::string QuoteJson(std::string_view text) {
  std::string out;
  AppendString(text, out);
  return out;
}

}  // namespace espalier
