#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace espalier {

// A text that grows at its end, and of which the beginning may be lost, from where somebody has
// read it.
struct TextFromCursor {
  // Where what comes after the cursor begins in the text as it is now. nullopt: the place is not
  // there any more, or may be several, or this is no cursor.
  std::optional<std::size_t> start;
  // How far it is read with all of it: its length, its sum, and that of its last bytes, by which
  // the place is found again where the beginning is lost. No secret.
  std::string next;
};

// `cursor`: the `next` of a text before. Sums the text up once.
TextFromCursor FollowFrom(std::string_view cursor, std::string_view text);

}  // namespace espalier
