#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace espalier {

// The seed of one sample in one epoch of a trial: the same whatever the number of replicas and of
// threads, and however often the sample is prepared. `epoch` counts from 1.
std::uint64_t SampleSeed(std::uint64_t trial_seed, std::int64_t epoch, std::int64_t index);

// Samples of one microbatch, in their order.
struct SampleSelection {
  std::span<const std::int64_t> indices;  // each from 0 to the data set's size - 1
  std::int64_t epoch = 1;                 // from 1
  std::uint64_t trial_seed = 0;

  // For what is random about a sample, e.g. how an image is cropped.
  std::uint64_t SeedOf(std::size_t i) const { return SampleSeed(trial_seed, epoch, indices[i]); }
};

// A data set whose samples can be read in any order. Most derive from MapDataset, which makes
// batches out of single samples; a data set that is quicker at whole batches derives from this.
//
// GetBatch is called from several threads at once, so it must not change the data set. What it
// draws must come from the seeds that it is given: LibTorch's own generator is shared with the
// model. An exception that it throws comes out of the loader's NextBatch.
template <typename BatchType>
class Dataset {
 public:
  using Batch = BatchType;
  using Reader = std::function<Batch(const SampleSelection& samples)>;

  virtual ~Dataset() = default;

  virtual std::int64_t size() const = 0;
  virtual Batch GetBatch(const SampleSelection& samples) const = 0;
  // Returns what one thread gets its batches through. It lives no longer than the data set.
  virtual Reader MakeReader() const {
    return [this](const SampleSelection& samples) { return GetBatch(samples); };
  }
};

}  // namespace espalier
