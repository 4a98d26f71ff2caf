#pragma once

#include <string_view>

namespace espalier {

extern const std::string_view kSuggestScript;  // suggest.py

}  // namespace espalier
