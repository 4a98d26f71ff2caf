#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace espalier {

// How far somebody has read a text that grows at its end, and of which the beginning may be lost:
// its length, its sum, and that of its last bytes, by which the place is found again where the
// beginning is lost. No secret.
std::string CursorAfter(std::string_view text);

// Where what comes after the cursor begins in the text as it is now. nullopt: the place is not
// there any more, or may be several, or this is no cursor.
std::optional<std::size_t> FindCursor(std::string_view cursor, std::string_view text);

}  // namespace espalier
