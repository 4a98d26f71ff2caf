#pragma once

#include <string_view>

namespace espalier {

// Whether protobuf and Python would accept the text: no surrogates, no overlong forms.
bool IsUtf8(std::string_view text);

}  // namespace espalier
