#include "trial_runner/elastic/sample_order.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/random.h"

namespace espalier {
namespace {

// Of few places all permutations are to be about equally likely: the network gets at least so many
// bits to mix. An epoch of one sample walks 2^8 places for it.
constexpr int kLeastBits = 8;

int BitsFor(std::int64_t size) {
  const auto last = static_cast<std::uint64_t>(std::max<std::int64_t>(size, 1) - 1);
  return std::max(kLeastBits, static_cast<int>(std::bit_width(last)));
}

// The upper `bits` of a mix of both.
std::uint64_t Mixed(std::uint64_t value, std::uint64_t key, int bits) {
  std::uint64_t mix = (value + key) * 0x9E3779B97F4A7C15;
  mix ^= mix >> 32;
  return mix * 0xD6E8FEB86659FD93 >> (64 - bits);
}

}  // namespace

SampleOrder::SampleOrder(std::int64_t size, std::uint64_t seed)
    : size_(size),
      seed_(seed),
      left_bits_(BitsFor(size) / 2),
      right_bits_(BitsFor(size) - left_bits_) {}

std::span<const std::int64_t> SampleOrder::Slice(std::int64_t epoch, const SampleSlice& slice) {
  ESPALIER_CHECK(slice.begin >= 0 && slice.begin + slice.size <= size_, "slice outside the epoch");
  TurnTo(epoch);
  slice_.resize(static_cast<std::size_t>(slice.size));
  const auto size = static_cast<std::uint64_t>(size_);
  auto place = static_cast<std::uint64_t>(slice.begin);
  for (std::int64_t& sample : slice_) {
    std::uint64_t at = Permute(place++);
    while (at >= size) at = Permute(at);
    sample = static_cast<std::int64_t>(at);
  }
  return slice_;
}

void SampleOrder::TurnTo(std::int64_t epoch) {
  if (epoch == epoch_) return;
  epoch_ = epoch;
  Random random(MixSeed(seed_, static_cast<std::uint64_t>(epoch)));
  for (std::uint64_t& key : keys_) key = random.Next();
}

std::uint64_t SampleOrder::Permute(std::uint64_t place) const {
  std::uint64_t left = place >> right_bits_;
  std::uint64_t right = place & ((std::uint64_t{1} << right_bits_) - 1);
  for (std::size_t i = 0; i < kRounds; i += 2) {
    left ^= Mixed(right, keys_[i], left_bits_);
    right ^= Mixed(left, keys_[i + 1], right_bits_);
  }
  return left << right_bits_ | right;
}

}  // namespace espalier
