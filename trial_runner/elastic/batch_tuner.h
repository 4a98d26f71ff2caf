#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "allocator/goodput/goodput.h"
#include "allocator/goodput/profile.h"

namespace espalier {

// Chooses the batch of a trial in adaptive mode from its own measured step times. Rank 0 asks it
// and tells the others. Pure.
class BatchTuner {
 public:
  // A change has to promise at least this factor, because each change makes caches and averages
  // start again.
  static constexpr double kMinImprovement = 1.05;

  explicit BatchTuner(BatchBounds bounds) : bounds_(bounds) {}

  void Add(const std::vector<ProfileEntry>& entries);

  // Returns the batch to go on with on so many replicas, or nothing if the present one (global,
  // atomic) is nearly as good or nothing is known yet about this number of replicas.
  std::optional<BatchChoice> Choose(int nodes, int replicas, const GradientNoise& noise,
                                    std::int64_t batch_size, std::int64_t atomic_batch_size);

 private:
  BatchBounds bounds_;
  Profile profile_;
  std::optional<ThroughputParams> params_;
};

}  // namespace espalier
