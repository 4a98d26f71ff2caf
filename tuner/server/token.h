#pragma once

#include <string_view>

namespace espalier {

// True if `authorization` is "Bearer " and the token. The time taken does not tell how much of it
// was right.
bool ShowsToken(std::string_view authorization, std::string_view token);

// As above, for the bare token.
bool SameToken(std::string_view shown, std::string_view token);

}  // namespace espalier
