#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace espalier {

// The text, or as much of its beginning as fits into so many bytes, and "...". Cut between two
// characters of UTF-8.
std::string Shortened(std::string_view text, std::size_t most_bytes);

}  // namespace espalier
