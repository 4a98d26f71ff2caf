#pragma once

// Private to search_spaces/, study_file/ and api/json_reader.cc: the only header that shows the
// JSON library.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "search_spaces/parameter.h"

namespace espalier::search_spaces_json {

using Json = nlohmann::ordered_json;

inline constexpr std::size_t kMaxTextBytes = std::size_t{1} << 20;
inline constexpr int kMaxDepth = 64;
inline constexpr std::size_t kMaxKeysInObject = 1024;

enum class Author {
  kUser,
  kEspalier,  // whose own records may have any size and any number of keys
};

// Parses one JSON document, keeping key order. Besides malformed text (named by line and column) it
// refuses duplicate keys, numbers that no double can hold, and anything past the limits above.
// `what` starts the message.
absl::StatusOr<Json> Parse(std::string_view what, std::string_view text,
                           Author author = Author::kUser);

// The value as shown in a message: compact, cut when long.
std::string Quote(const Json& value);

// Takes booleans, numbers and strings; for anything else, the error says what it was.
absl::StatusOr<ParameterValue> ToParameterValue(const Json& json);
Json FromParameterValue(const ParameterValue& value);

}  // namespace espalier::search_spaces_json
