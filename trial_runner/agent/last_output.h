#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace espalier {

// The text with each byte that is not part of valid UTF-8 replaced by '?'. Pure.
std::string ValidUtf8(std::string_view text);

// The end of a text, at most `limit` bytes, from the start of a line where one begins in there,
// else from the start of a character. Pure.
std::string LastLines(std::string_view text, std::size_t limit);

// The same, of what a program has printed, as a terminal would show it, see TerminalText. Where the
// cut falls into a traceback of Python or into what that one's error says, the line that names the
// error is kept, and of the traceback the first frames, which are those of the program, and the
// last ones; of a chain of exceptions so are the first one's. The middle of a very long line is
// left out, and where lines are, a line says so. Requires limit >= 1024. Pure.
std::string LastLinesOfProgram(std::string_view printed, std::size_t limit);

// The end of a file, at most `most` bytes; empty if it cannot be read.
std::string FileTail(const std::string& path, std::size_t most);

// The end of a replica's log, at most kMaxLastOutput_bytes, as LastLinesOfProgram; empty if it
// cannot be read.
std::string LastOutput(const std::string& log_path);

}  // namespace espalier
