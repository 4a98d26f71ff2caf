#pragma once

#include <string>
#include <string_view>

namespace espalier {

// "0a1b" of two bytes.
std::string Hexadecimal(std::string_view bytes);

// Whether all of it are lower-case hexadecimal digits, and there are so many.
bool IsHexadecimal(std::string_view text, std::size_t digits);

// SHA-256 of a text, in hexadecimal.
std::string HashOf(std::string_view text);

// HMAC-SHA256 of a text, in hexadecimal: only a holder of the key can make it.
std::string KeyedHash(std::string_view key, std::string_view text);

// That many unpredictable bytes; the same in hexadecimal.
std::string RandomBytes(std::size_t count);
std::string RandomHexadecimal(std::size_t bytes);

// Whether two texts are the same. The time taken tells only how long they are.
bool SameText(std::string_view a, std::string_view b);

}  // namespace espalier
