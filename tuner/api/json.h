#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "google/protobuf/message.h"

namespace espalier {

// A message as JSON for REST: names as in the .proto, every field present (an absent optional one
// is null), enums by name, 64-bit integers as numbers, NaN and infinities as the strings "NaN",
// "Infinity" and "-Infinity", texts that are JSON themselves (json_text) as what they stand for,
// and the entries of some maps (json_inline) beside the message's own fields.
std::string MessageToJson(const google::protobuf::Message& message);

// The text as a JSON string, with its quotes.
std::string QuoteJson(std::string_view text);

// The text as it is, if it is JSON; else as a JSON string: what JSON does not know, as Python's
// NaN, or what nests too deep for readers. null for an empty one.
std::string JsonOrQuoted(const std::string& text);

// The message of a JSON text. Infinities may be "inf" and "-inf" too, in any case; enums lower case
// and without their prefix; null is as if the key were absent, but for numbers: as JavaScript writes
// NaN, it is refused. INVALID_ARGUMENT names the key, what it needs and what was given; keys that
// are unknown, or in `elsewhere` (a path gives them), are refused.
absl::Status MessageFromJson(std::string_view json, google::protobuf::Message& message,
                             const std::vector<std::string_view>& elsewhere = {});

}  // namespace espalier
