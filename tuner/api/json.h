#pragma once

#include <string>
#include <string_view>

#include "google/protobuf/message.h"
#include "tuner/base/status.h"

namespace espalier {

// A message as JSON for REST: names as in the .proto, every field present (an absent optional one
// is null), enums by name, 64-bit integers as numbers, NaN and infinities as the strings "NaN",
// "Infinity" and "-Infinity".
std::string MessageToJson(const google::protobuf::Message& message);

// A JSON string, with its quotes.
std::string QuoteJson(std::string_view text);

// INVALID_ARGUMENT for text that is not this message; an unknown key is refused.
absl::Status MessageFromJson(std::string_view json, google::protobuf::Message& message);

}  // namespace espalier
