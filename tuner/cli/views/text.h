#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace espalier {

// How the CLI, its table and its report write numbers and times, and lay out text. Pure.

std::string FormatValue(double value);       // four significant digits; nan, inf, -inf
std::string FormatExactly(double value);     // the fewest digits that give the value back
std::string FormatDuration(double seconds);  // 0.4s, 12s, 1m05s, 2h03m, 3d04h
std::string FormatClock(double at);          // local time of day, 14:03:59

// Columns on a terminal, of UTF-8: East Asian characters and emoji have two.
std::size_t DisplayWidth(std::string_view text);
// Exactly `width` columns: padded with blanks or cut with an ellipsis. Control characters, which
// could come from a program's output or a parameter, become blanks.
std::string FitLeft(std::string_view text, std::size_t width);
std::string FitRight(std::string_view text, std::size_t width);
// At most `width` columns: cut in the same way, and not padded.
std::string Cut(std::string_view text, std::size_t width);

// Rows as left-aligned columns, two blanks between; the first row is the heading.
std::vector<std::string> Columns(const std::vector<std::vector<std::string>>& rows);

// The words of a text in lines of at most `width` columns; a longer word has a line of its own.
std::vector<std::string> Wrapped(std::string_view text, std::size_t width);

// "1 trial", "2 trials".
std::string Count(std::int64_t n, std::string_view singular);

}  // namespace espalier
