#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "trial_runner/datasets/dataset.h"

namespace espalier {

// The samples of one epoch, in their order. Used by one thread. What its methods throw comes out of
// the loader's NextBatch.
template <typename Example>
class SampleStream {
 public:
  virtual ~SampleStream() = default;

  // Returns the next sample, or nothing at the end. What is random about it must follow from the
  // seed.
  virtual std::optional<Example> Next(std::uint64_t seed) = 0;
  // Skips `count` samples, which other replicas read or which were read before; fewer where the
  // stream ends. Worth overriding where that is cheaper than reading them.
  virtual void Skip(std::int64_t count) {
    while (count > 0 && Next(0)) --count;
  }
};

// A data set that can only be read from its beginning. Each replica reads its own samples and skips
// those of the others. A replica that reads ahead, or drops an unfinished step, has to go back
// after a resize: its stream is then opened again, and skips to where the group is.
//
// Open is called from several threads at once. Most derive from IterableDataset, which has Collate.
template <typename ExampleType, typename BatchType>
class StreamDataset {
 public:
  using Example = ExampleType;
  using Batch = BatchType;
  using Stream = SampleStream<Example>;

  virtual ~StreamDataset() = default;

  // How many samples every epoch has. If the data set does not know, the loader on each replica
  // reads the stream of the first epoch once from end to end to count them, before training starts.
  virtual std::optional<std::int64_t> size() const { return std::nullopt; }
  // Returns the stream of one epoch, counted from 1, with the same samples in the same order each
  // time and on each replica.
  virtual std::unique_ptr<Stream> Open(std::int64_t epoch) const = 0;
  virtual Batch Collate(std::vector<Example> examples) const = 0;
};

}  // namespace espalier
