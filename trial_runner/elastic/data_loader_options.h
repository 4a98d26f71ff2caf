#pragma once

#include <cstdint>

namespace espalier {

struct DataLoaderOptions {
  std::int64_t batch_size = 32;  // global: samples of one optimizer step over all replicas
  // How far adaptive mode may grow batch_size; 0: not at all. Fixed mode never changes it.
  std::int64_t max_batch_size = 0;
  // Limits of one forward pass on one replica; 0: none. Larger shares are accumulated.
  std::int64_t min_atomic_batch_size = 0;
  std::int64_t max_atomic_batch_size = 0;
  // Whether a step may have several microbatches: for larger batches in adaptive mode, and for a
  // lone replica to measure its gradient noise between them.
  bool accumulation = true;

  // For DatasetLoader: threads that prepare batches while the model trains (0: the model waits for
  // each batch), and how many batches each of them may be ahead. That many batches are held in
  // memory.
  int workers = 0;
  int prefetch = 2;

  static constexpr int kMaxWorkers = 256;
  static constexpr int kMaxPrefetch = 64;
};

// Limits of one forward pass on one replica, as AutoscaleBatchSize takes them; 0: none.
struct AtomicBatchRange {
  std::int64_t min = 0;
  std::int64_t max = 0;
};

}  // namespace espalier
