#pragma once

#include <algorithm>
#include <string>

namespace espalier {

// The text with zero bytes for its signs "@".
inline std::string WithZeroBytes(std::string text) {
  std::replace(text.begin(), text.end(), '@', '\0');
  return text;
}

}  // namespace espalier
