#include "tests/base/no_room.h"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace espalier {
namespace {

std::atomic<std::size_t> no_room_for = SIZE_MAX;

}  // namespace

NoRoomFor::NoRoomFor(std::size_t bytes) { no_room_for = bytes; }
NoRoomFor::~NoRoomFor() { no_room_for = SIZE_MAX; }

}  // namespace espalier

// All that operator delete may be given; the sanitizers' own would not be freed by it. Not inlined:
// g++ would take what one half of a pair has become for a mismatch of the other.
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return size < espalier::no_room_for ? std::malloc(size == 0 ? 1 : size) : nullptr;
}
[[gnu::noinline]] void* operator new(std::size_t size) {
  void* const room = operator new(size, std::nothrow);
  if (room == nullptr) throw std::bad_alloc();
  return room;
}
[[gnu::noinline]] void operator delete(void* room) noexcept { std::free(room); }
[[gnu::noinline]] void operator delete(void* room, std::size_t) noexcept { std::free(room); }
