#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace espalier {

// Splits a command line into words the way a POSIX shell quotes them: blanks part words, '...'
// keeps everything, "..." and a backslash keep the next character. Nothing is expanded, and no
// shell will read the words; so what only a shell could give a meaning to (a pipe, a redirection,
// a variable) is refused unless it is quoted, rather than handed on as a strange argument.
absl::StatusOr<std::vector<std::string>> SplitWords(std::string_view line);

// Letters, digits, '_', '-' and '.', the first a letter, digit or '_'.
bool IsPlainName(std::string_view name);

// Not blank, and no character in it controls a terminal or ends a line.
bool IsReadable(std::string_view name);

inline constexpr std::size_t kMaxVariables = 1024;  // of an environment

// Neither empty nor with a '=' or a zero byte.
bool IsVariableName(std::string_view name);

// Whether there is a zero byte in it, at which programs would end it.
bool HasNul(std::string_view text);

}  // namespace espalier
