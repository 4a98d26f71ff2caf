#pragma once

#include <cstddef>

namespace espalier {

// While it lives, no thread of this program gets so many bytes at once: what would have them throws
// std::bad_alloc, as where there is no memory left. One at a time. no_room.cc stands in the place
// of the library's operator new.
class NoRoomFor {
 public:
  explicit NoRoomFor(std::size_t bytes);
  ~NoRoomFor();
  NoRoomFor(const NoRoomFor&) = delete;
  NoRoomFor& operator=(const NoRoomFor&) = delete;
};

}  // namespace espalier
