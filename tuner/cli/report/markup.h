#pragma once

#include <string>
#include <string_view>

namespace espalier::report {

// Text for HTML, in elements and in quoted attributes. Bytes that no page may hold
// (control characters) become blanks.
std::string Escape(std::string_view text);

}  // namespace espalier::report
