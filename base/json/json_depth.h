#pragma once

#include <string_view>

#include "base/status.h"

namespace espalier {

// Levels of lists and objects in JSON of others, at every door. Parsers, writers and destructors of
// libraries recurse, and a service that runs out of stack cannot say so.
inline constexpr int kMaxJsonDepth = 64;
// The same in what we have written around texts of others.
inline constexpr int kMaxRecordDepth = 2 * kMaxJsonDepth;

// Whether a parser of `json` would get deeper. Also of what is no JSON: it is looked at from left
// to right, and nothing but strings and brackets counts.
bool NestsDeeper(std::string_view json, int max_depth = kMaxJsonDepth);

// Whether a parser would take the text for ended before its end, at a zero byte, and its beginning
// for all of it. JSON has none.
bool EndsEarly(std::string_view json);

// InvalidArgument for what nests deeper than kMaxJsonDepth.
absl::Status CheckJsonDepth(std::string_view json);

}  // namespace espalier
