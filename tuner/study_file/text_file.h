#pragma once

#include <string>

#include "base/status.h"

namespace espalier {

inline constexpr std::size_t kMaxTextFileBytes = std::size_t{1} << 20;

// A whole file. The error says what is wrong with it, without its path: missing, a folder, not
// readable, more than kMaxTextFileBytes.
absl::StatusOr<std::string> ReadTextFile(const std::string& path);

}  // namespace espalier
