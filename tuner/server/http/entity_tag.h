#pragma once

#include <string>
#include <string_view>

namespace espalier {

// The value of a header "ETag" for what this text stands for. A weak one: the same answer may be
// packed in several ways.
std::string EntityTag(std::string_view text);

// Whether a header "If-None-Match" names the tag, or any.
bool NamesTag(std::string_view if_none_match, std::string_view tag);

}  // namespace espalier
