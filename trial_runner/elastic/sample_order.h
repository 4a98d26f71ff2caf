#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trial_runner/elastic/step_schedule.h"

namespace espalier {

// The order in which an epoch visits the samples: a permutation that depends on seed and epoch
// alone, so every replica of every group cuts its slices from the same one, and each sample is seen
// exactly once an epoch. Keeps the permutation of the epoch that was asked for last.
class SampleOrder {
 public:
  SampleOrder(std::int64_t size, std::uint64_t seed) : size_(size), seed_(seed) {}

  std::int64_t size() const { return size_; }
  // Valid until the next call with another epoch.
  std::span<const std::int64_t> Slice(std::int64_t epoch, const SampleSlice& slice);

 private:
  std::int64_t size_;
  std::uint64_t seed_;
  std::int64_t epoch_ = -1;
  std::vector<std::int64_t> order_;
};

}  // namespace espalier
