#pragma once

#include <string>
#include <string_view>

namespace espalier {

// What a terminal would show in the end of a text that a program has printed: of a line that was
// written over by "\r", as progress bars are, what was written last; no colours or other escape
// sequences (ECMA-48), and no other control characters but tabs and ends of lines. Where nothing
// follows the last "\r", the line is what stood before it. Pure.
std::string TerminalText(std::string_view printed);

}  // namespace espalier
