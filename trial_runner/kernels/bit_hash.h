#pragma once

#include <cstddef>
#include <cstdint>

namespace espalier {

// A hash of all bits of memory that is a sum over its words of 32 bits, each times an odd number of
// its place: two memories that differ in one word never have the same, and others have it by chance
// in one of 2^32 cases or fewer. Pure; the pointer needs no alignment. Bytes beyond the last word
// count as one that is filled up with zeros.
//
// `first_word`: the number of the first word within the whole, so that parts of it add up to it.
std::uint64_t HashBits(const void* bytes, std::size_t size, std::uint64_t first_word = 0);

// The number of a place: for those who compute the sum elsewhere.
inline constexpr std::uint32_t kPlaceFactor = 0x9E3779B1;
inline std::uint32_t OddOfPlace(std::uint64_t word) {
  return static_cast<std::uint32_t>(2 * word + 1) * kPlaceFactor;
}

}  // namespace espalier
