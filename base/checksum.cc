#include "base/checksum.h"

#include <array>
#include <bit>
#include <cstring>

namespace espalier {
namespace {

constexpr std::uint64_t kPolynomial = 0xC96C5795D7870F42;

using Tables = std::array<std::array<std::uint64_t, 256>, 8>;

// Table k says what a byte does that has k more bytes behind it.
constexpr Tables MakeTables() {
  Tables tables{};
  for (std::uint64_t byte = 0; byte < 256; ++byte) {
    std::uint64_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (std::size_t k = 1; k < tables.size(); ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint64_t before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8) ^ tables[0][before & 0xff];
    }
  }
  return tables;
}

constexpr Tables kTables = MakeTables();
static_assert(std::endian::native == std::endian::little, "eight bytes at once are read so");

}  // namespace

void Checksum::Add(const void* bytes, std::size_t count) {
  const auto* next = static_cast<const std::uint8_t*>(bytes);
  std::uint64_t crc = state_;
  for (; count >= 8; count -= 8, next += 8) {
    std::uint64_t eight = 0;
    std::memcpy(&eight, next, sizeof eight);
    crc ^= eight;
    std::uint64_t folded = 0;
    for (std::size_t i = 0; i < 8; ++i) folded ^= kTables[7 - i][(crc >> (8 * i)) & 0xff];
    crc = folded;
  }
  for (; count > 0; --count, ++next) crc = (crc >> 8) ^ kTables[0][(crc ^ *next) & 0xff];
  state_ = crc;
}

}  // namespace espalier
