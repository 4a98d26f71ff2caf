#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace espalier {

inline constexpr std::size_t kMaxTextFileBytes = std::size_t{1} << 20;

// A whole file. The error says what is wrong with it, without its path: missing, a folder, not
// readable, more than kMaxTextFileBytes.
absl::StatusOr<std::string> ReadTextFile(const std::string& path);

// The text with blanks in place of comments (//... and /*...*/ outside strings), so that it is JSON
// of the same lines and columns. Pure.
std::string WithoutComments(std::string_view text);

// The JSON that a file of a user's holds: without comments, or made of YAML where the name `path`
// says so (yaml_text.h). Of the same lines. Errors begin with the path.
absl::StatusOr<std::string> JsonInFile(std::string_view text, const std::string& path);

}  // namespace espalier
