#pragma once

#include <span>
#include <string_view>

namespace espalier {

// The known name that `name` is probably a slip of: the one fewest edits away (Levenshtein), at
// most a third of its length and case aside; empty if none is that near. Of equals the first.
std::string_view NearName(std::string_view name, std::span<const std::string_view> known);

}  // namespace espalier
