#include "trial_runner/kernels/bit_hash.h"

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"

namespace espalier {
namespace {

std::vector<std::uint8_t> SomeBytes(std::size_t size) {
  std::vector<std::uint8_t> bytes(size);
  std::uint64_t draw = size;
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(draw = MixSeed(draw, 1));
  return bytes;
}

std::uint64_t Plain(const std::vector<std::uint8_t>& bytes) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::uint64_t in_word = std::uint64_t{bytes[i]} << (8 * (i % 4));
    sum += in_word * OddOfPlace(i / 4);
  }
  return sum;
}

TEST(HashBits, IsTheSumOverWordsThatItsHeaderNames) {
  for (const std::size_t size :
       std::initializer_list<std::size_t>{0, 1, 3, 4, 127, 128, 129, 1000, 4099}) {
    const std::vector<std::uint8_t> bytes = SomeBytes(size);
    EXPECT_EQ(HashBits(bytes.data(), size), Plain(bytes)) << size;
  }
}

TEST(HashBits, EachBitCounts) {
  std::vector<std::uint8_t> bytes = SomeBytes(301);
  const std::uint64_t before = HashBits(bytes.data(), bytes.size());
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
    EXPECT_NE(HashBits(bytes.data(), bytes.size()), before) << "bit " << bit;
    bytes[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
  }
}

TEST(HashBits, PartsAddUpToTheWhole) {
  const std::vector<std::uint8_t> bytes = SomeBytes(1000);
  const std::uint64_t parts = HashBits(bytes.data(), 400) + HashBits(bytes.data() + 400, 600, 100);
  EXPECT_EQ(parts, HashBits(bytes.data(), bytes.size()));
}

}  // namespace
}  // namespace espalier
