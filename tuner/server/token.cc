#include "tuner/server/token.h"

#include <cstddef>

namespace espalier {

bool SameToken(std::string_view shown, std::string_view token) {
  // Every byte of what was shown is looked at, whatever its length and wherever it first differs.
  unsigned difference = shown.size() == token.size() ? 0 : 1;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const char expected = token.empty() ? '\0' : token[i % token.size()];
    difference |= static_cast<unsigned>(static_cast<unsigned char>(shown[i]) ^
                                        static_cast<unsigned char>(expected));
  }
  return difference == 0;
}

bool ShowsToken(std::string_view authorization, std::string_view token) {
  constexpr std::string_view kScheme = "Bearer ";
  if (!authorization.starts_with(kScheme)) return false;
  return SameToken(authorization.substr(kScheme.size()), token);
}

}  // namespace espalier
