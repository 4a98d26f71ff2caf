#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "trial_runner/elastic/step_schedule.h"

namespace espalier {

// The order in which an epoch visits the samples: a permutation that depends on seed and epoch
// alone, so every replica of every group cuts its slices from the same one, and each sample is seen
// exactly once an epoch.
//
// A sample is computed from its place alone, by a Feistel network over a power of two that holds
// all places, which is repeated where it leads outside of them (cycle walking: Black and Rogaway,
// "Ciphers with arbitrary finite domains", 2002). So no epoch begins with a shuffle of millions of
// numbers, for which others would wait where a replica joins them, and none are kept.
class SampleOrder {
 public:
  SampleOrder(std::int64_t size, std::uint64_t seed);

  std::int64_t size() const { return size_; }
  // Valid until the next call.
  std::span<const std::int64_t> Slice(std::int64_t epoch, const SampleSlice& slice);

 private:
  static constexpr std::size_t kRounds = 8;

  void TurnTo(std::int64_t epoch);
  std::uint64_t Permute(std::uint64_t place) const;

  std::int64_t size_;
  std::uint64_t seed_;
  int left_bits_;  // of a place, and the others
  int right_bits_;
  std::int64_t epoch_ = -1;  // to which the keys belong
  std::array<std::uint64_t, kRounds> keys_{};
  std::vector<std::int64_t> slice_;
};

}  // namespace espalier
