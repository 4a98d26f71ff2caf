#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace espalier {

class AdaptiveDataParallel;
class TrainingEngine;

struct DataLoaderOptions {
  std::int64_t batch_size = 32;  // global: samples of one optimizer step over all replicas
  // How far adaptive mode may grow it; 0: not at all. Fixed mode never changes it.
  std::int64_t max_batch_size = 0;
  // Limits of one forward pass on one replica; 0: none. Larger shares are accumulated.
  std::int64_t min_atomic_batch_size = 0;
  std::int64_t max_atomic_batch_size = 0;
  bool accumulation = true;  // adaptive mode may accumulate to reach a larger batch
};

// Deals the samples of a data set to the replicas, as indices. Each sample is dealt exactly once
// an epoch, in an order that depends on the trial's seed alone, whatever happens to the group in
// between; a replica that joins, or a trial that is resumed, starts where the group is.
class AdaptiveDataLoader {
 public:
  // Samples are numbered from 0 to dataset_size - 1. `parallel` must outlive the loader.
  AdaptiveDataLoader(AdaptiveDataParallel& parallel, std::int64_t dataset_size,
                     DataLoaderOptions options);

  // Goes on to the next epoch, unless `epochs` are done. The first call waits until this replica is
  // part of a group. Each call after it saves a checkpoint.
  bool NextEpoch(std::int64_t epochs);
  // The epoch that NextEpoch began, from 1.
  std::int64_t epoch() const;

  // This replica's next microbatch, as indices to pass to index_select; nothing when the epoch is
  // over. Each one is to be answered with AdaptiveDataParallel::Step.
  std::optional<at::Tensor> NextBatch();

 private:
  TrainingEngine& engine_;
};

}  // namespace espalier
