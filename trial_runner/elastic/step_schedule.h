#pragma once

#include <cstdint>
#include <vector>

namespace espalier {

// A run of consecutive positions in an epoch's order of samples.
struct SampleSlice {
  std::int64_t begin = 0;
  std::int64_t size = 0;

  friend bool operator==(const SampleSlice&, const SampleSlice&) = default;
};

// What one replica does in one optimizer step. It may have no microbatches (fewer samples left than
// replicas): it then sits the step out.
struct StepPlan {
  std::int64_t samples = 0;               // of the step, over all replicas
  std::vector<SampleSlice> microbatches;  // of this replica, none of them empty

  // A microbatch's mean gradient counts by its share of the step's samples, so that the step is the
  // mean over its samples however unevenly these were divided.
  double WeightOf(const SampleSlice& microbatch) const {
    return static_cast<double>(microbatch.size) / static_cast<double>(samples);
  }
};

// Part `index` of `slice` cut into `count` parts whose sizes differ by one at most.
SampleSlice CutEvenly(const SampleSlice& slice, std::int64_t index, std::int64_t count);

// Cuts the next step of an epoch: min(batch_size, epoch_size - cursor) samples from `cursor` on,
// over `replicas`, each share into as few equal microbatches as max_atomic allows. `aligned`: into
// as many as the largest share, where there are samples enough. Requires rank < replicas, all sizes
// > 0, cursor < epoch_size.
StepPlan PlanStep(std::int64_t cursor, std::int64_t epoch_size, std::int64_t batch_size, int rank,
                  int replicas, std::int64_t max_atomic, bool aligned = false);

}  // namespace espalier
