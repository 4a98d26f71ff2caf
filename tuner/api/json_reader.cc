// JSON to a message. Protobuf's own reader takes more than it should and says less.

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/near_name.h"
#include "google/protobuf/descriptor.h"
#include "search_spaces/json_text.h"
#include "tuner.pb.h"
#include "tuner/api/json.h"

namespace espalier {

namespace {

using google::protobuf::EnumDescriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using search_spaces_json::Json;
using search_spaces_json::Quote;

absl::Status Needs(const std::string& place, const std::string& what, const Json& got) {
  return absl::InvalidArgumentError(
      absl::StrCat("\"", place, "\": needs ", what, ", got ", Quote(got)));
}

bool IsNumber(const FieldDescriptor& field) {
  return !field.is_map() && (field.cpp_type() == FieldDescriptor::CPPTYPE_INT32 ||
                             field.cpp_type() == FieldDescriptor::CPPTYPE_INT64 ||
                             field.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE);
}

std::string Dump(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// TRIAL_COMPLETE by that name, by COMPLETE and by complete.
const EnumValueDescriptor* FindValue(const EnumDescriptor& type, const std::string& name) {
  const std::string upper = absl::AsciiStrToUpper(name);
  for (int i = 0; i < type.value_count(); ++i) {
    const std::string& full = type.value(i)->name();
    if (upper == full || (!upper.empty() && absl::EndsWith(full, "_" + upper))) {
      return type.value(i);
    }
  }
  return nullptr;
}

std::string NamesOf(const EnumDescriptor& type) {
  std::vector<std::string> names;
  for (int i = 1; i < type.value_count(); ++i) names.push_back(type.value(i)->name());
  return absl::StrJoin(names, ", ");
}

class Reader {
 public:
  explicit Reader(std::vector<std::string_view> elsewhere) : elsewhere_(std::move(elsewhere)) {}

  absl::Status Read(const Json& json, const std::string& place, Message& message) const {
    if (!json.is_object()) {
      return absl::InvalidArgumentError(
          absl::StrCat(place.empty() ? "the body" : "\"" + place + "\"", ": needs an object, got ",
                       Quote(json)));
    }
    const auto& descriptor = *message.GetDescriptor();
    for (const auto& [key, value] : json.items()) {
      const std::string inner = place.empty() ? key : absl::StrCat(place, ".", key);
      const FieldDescriptor* field = descriptor.FindFieldByName(key);
      if (field == nullptr || Elsewhere(key)) return Unknown(key, inner, KeysOf(descriptor));
      const bool takes_null = !field->is_map() && field->options().GetExtension(v1::json_text);
      if (value.is_null() && IsNumber(*field)) {
        // As JavaScript writes NaN: it is not that none was meant.
        return absl::InvalidArgumentError(
            absl::StrCat("\"", inner, "\": needs ", field->is_repeated() ? "numbers" : "a number",
                         ", got null: where there is none, leave the key out"));
      }
      if (value.is_null() && !takes_null) continue;
      ESPALIER_RETURN_IF_ERROR(ReadField(value, inner, *field, message));
    }
    return absl::OkStatus();
  }

 private:
  bool Elsewhere(std::string_view key) const {
    return std::find(elsewhere_.begin(), elsewhere_.end(), key) != elsewhere_.end();
  }

  static absl::Status Unknown(const std::string& key, const std::string& place,
                              const std::vector<std::string_view>& known) {
    const std::string meant(NearName(key, known));
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", place, "\": unknown key",
        meant.empty() ? "." : absl::StrCat(", did you mean \"", meant, "\"?"), " Known: ",
        absl::StrJoin(known, ", ", [](auto* text, std::string_view name) { text->append(name); })));
  }

  std::vector<std::string_view> KeysOf(const google::protobuf::Descriptor& descriptor) const {
    std::vector<std::string_view> keys;
    for (int i = 0; i < descriptor.field_count(); ++i) {
      if (!Elsewhere(descriptor.field(i)->name())) keys.push_back(descriptor.field(i)->name());
    }
    return keys;
  }

  absl::Status ReadField(const Json& json, const std::string& place, const FieldDescriptor& field,
                         Message& message) const {
    if (field.is_map()) return ReadMap(json, place, field, message);
    if (!field.is_repeated()) return ReadValue(json, place, field, message);
    if (!json.is_array()) return Needs(place, "a list", json);
    for (std::size_t i = 0; i < json.size(); ++i) {
      ESPALIER_RETURN_IF_ERROR(
          ReadValue(json[i], absl::StrCat(place, "[", i, "]"), field, message));
    }
    return absl::OkStatus();
  }

  // Keys are strings in all our maps.
  absl::Status ReadMap(const Json& json, const std::string& place, const FieldDescriptor& field,
                       Message& message) const {
    if (!json.is_object()) return Needs(place, "an object", json);
    const bool json_text = field.options().GetExtension(v1::json_text);
    for (const auto& [key, value] : json.items()) {
      Message& entry = *message.GetReflection()->AddMessage(&message, &field);
      const auto* descriptor = entry.GetDescriptor();
      entry.GetReflection()->SetString(&entry, descriptor->map_key(), key);
      if (json_text) {
        entry.GetReflection()->SetString(&entry, descriptor->map_value(), Dump(value));
      } else {
        ESPALIER_RETURN_IF_ERROR(
            ReadValue(value, absl::StrCat(place, ".", key), *descriptor->map_value(), entry));
      }
    }
    return absl::OkStatus();
  }

  // One value: set where the field holds one, added where it holds several.
  absl::Status ReadValue(const Json& json, const std::string& place, const FieldDescriptor& field,
                         Message& message) const {
    const Reflection& to = *message.GetReflection();
    const bool repeated = field.is_repeated();
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32: {
        ESPALIER_ASSIGN_OR_RETURN(const std::int64_t wide,
                                  Integer(json, place, std::numeric_limits<std::int32_t>::min(),
                                          std::numeric_limits<std::int32_t>::max()));
        const auto value = static_cast<std::int32_t>(wide);
        repeated ? to.AddInt32(&message, &field, value) : to.SetInt32(&message, &field, value);
        return absl::OkStatus();
      }
      case FieldDescriptor::CPPTYPE_INT64: {
        ESPALIER_ASSIGN_OR_RETURN(const std::int64_t value,
                                  Integer(json, place, std::numeric_limits<std::int64_t>::min(),
                                          std::numeric_limits<std::int64_t>::max()));
        repeated ? to.AddInt64(&message, &field, value) : to.SetInt64(&message, &field, value);
        return absl::OkStatus();
      }
      case FieldDescriptor::CPPTYPE_DOUBLE: {
        ESPALIER_ASSIGN_OR_RETURN(const double value, Number(json, place));
        repeated ? to.AddDouble(&message, &field, value) : to.SetDouble(&message, &field, value);
        return absl::OkStatus();
      }
      case FieldDescriptor::CPPTYPE_FLOAT: {
        ESPALIER_ASSIGN_OR_RETURN(const float value, SmallNumber(json, place));
        repeated ? to.AddFloat(&message, &field, value) : to.SetFloat(&message, &field, value);
        return absl::OkStatus();
      }
      case FieldDescriptor::CPPTYPE_BOOL: {
        if (!json.is_boolean()) return Needs(place, "true or false", json);
        const bool value = json.get<bool>();
        repeated ? to.AddBool(&message, &field, value) : to.SetBool(&message, &field, value);
        return absl::OkStatus();
      }
      case FieldDescriptor::CPPTYPE_STRING: {
        const bool json_text = field.options().GetExtension(v1::json_text);
        if (!json_text && !json.is_string()) return Needs(place, "a string", json);
        std::string value = json_text ? Dump(json) : json.get<std::string>();
        repeated ? to.AddString(&message, &field, std::move(value))
                 : to.SetString(&message, &field, std::move(value));
        return absl::OkStatus();
      }
      case FieldDescriptor::CPPTYPE_ENUM: {
        const EnumDescriptor& type = *field.enum_type();
        const auto* value = json.is_string() ? FindValue(type, json.get<std::string>()) : nullptr;
        if (value == nullptr) return Needs(place, "one of " + NamesOf(type), json);
        repeated ? to.AddEnum(&message, &field, value) : to.SetEnum(&message, &field, value);
        return absl::OkStatus();
      }
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return Read(
            json, place,
            repeated ? *to.AddMessage(&message, &field) : *to.MutableMessage(&message, &field));
      case FieldDescriptor::CPPTYPE_UINT32:
      case FieldDescriptor::CPPTYPE_UINT64:
        break;
    }
    return absl::UnimplementedError(absl::StrCat("\"", place, "\": no message has such a field"));
  }

  static absl::StatusOr<std::int64_t> Integer(const Json& json, const std::string& place,
                                              std::int64_t low, std::int64_t high) {
    const absl::StatusOr<ParameterValue> value = search_spaces_json::ToParameterValue(json);
    const auto* integer = value.ok() ? std::get_if<std::int64_t>(&*value) : nullptr;
    if (integer == nullptr || *integer < low || *integer > high) {
      return Needs(place, absl::StrCat("an integer from ", low, " to ", high), json);
    }
    return *integer;
  }

  static absl::StatusOr<double> Number(const Json& json, const std::string& place) {
    if (json.is_number()) return json.get<double>();
    if (json.is_string()) {
      constexpr double kInfinity = std::numeric_limits<double>::infinity();
      const std::string word = absl::AsciiStrToLower(json.get<std::string>());
      if (word == "nan") return std::numeric_limits<double>::quiet_NaN();
      if (word == "inf" || word == "infinity") return kInfinity;
      if (word == "-inf" || word == "-infinity") return -kInfinity;
    }
    return Needs(place, R"(a number, "NaN", "Infinity" or "-Infinity")", json);
  }

  static absl::StatusOr<float> SmallNumber(const Json& json, const std::string& place) {
    ESPALIER_ASSIGN_OR_RETURN(const double value, Number(json, place));
    constexpr float kMost = std::numeric_limits<float>::max();
    if (std::isfinite(value) && std::abs(value) > double{kMost}) {
      return Needs(place, absl::StrCat("a number from ", -kMost, " to ", kMost), json);
    }
    return static_cast<float>(value);
  }

  const std::vector<std::string_view> elsewhere_;
};

}  // namespace

absl::Status MessageFromJson(std::string_view json, Message& message,
                             const std::vector<std::string_view>& elsewhere) {
  ESPALIER_ASSIGN_OR_RETURN(const Json parsed, search_spaces_json::Parse("the body", json));
  return Reader(elsewhere).Read(parsed, "", message);
}

}  // namespace espalier
