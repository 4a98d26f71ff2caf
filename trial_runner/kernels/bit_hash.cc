#include "trial_runner/kernels/bit_hash.h"

#include <array>
#include <cstring>

#include "trial_runner/kernels/clones.h"

namespace espalier {

ESPALIER_CLONES std::uint64_t HashBits(const void* bytes, std::size_t size,
                                       std::uint64_t first_word) {
  constexpr std::size_t kLanes = 32;
  constexpr std::size_t kBlock = kLanes * sizeof(std::uint32_t);
  const auto* from = static_cast<const unsigned char*>(bytes);
  std::array<std::uint64_t, kLanes> sums{};
  std::array<std::uint32_t, kLanes> odd{};
  for (std::size_t k = 0; k < kLanes; ++k) odd[k] = OddOfPlace(first_word + k);
  constexpr auto kStep = static_cast<std::uint32_t>(2 * kLanes) * kPlaceFactor;
  std::size_t done = 0;
  for (; done + kBlock <= size; done += kBlock) {
    std::array<std::uint32_t, kLanes> words;
    std::memcpy(words.data(), from + done, kBlock);
#pragma omp simd
    for (std::size_t k = 0; k < kLanes; ++k) {
      sums[k] += static_cast<std::uint64_t>(words[k]) * odd[k];
      odd[k] += kStep;
    }
  }
  std::uint64_t sum = 0;
  for (const std::uint64_t part : sums) sum += part;
  for (std::uint64_t word = first_word + done / sizeof(std::uint32_t); done < size; ++word) {
    std::uint32_t last = 0;
    const std::size_t count = size - done < sizeof last ? size - done : sizeof last;
    std::memcpy(&last, from + done, count);
    sum += static_cast<std::uint64_t>(last) * OddOfPlace(word);
    done += count;
  }
  return sum;
}

}  // namespace espalier
