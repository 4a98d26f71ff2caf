#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "trial_runner/datasets/stream_dataset.h"
#include "trial_runner/elastic/microbatch_forecast.h"

namespace espalier {

// Errors about a stream that is not what its data set says. `epoch` counts from 1.
absl::Status NoStreamError(std::int64_t epoch);
absl::Status StreamTooShortError(std::int64_t epoch, std::int64_t at, std::int64_t size);
absl::Status StreamTooLongError(std::int64_t epoch, std::int64_t size);

// Reads slices of a data set's streams: forwards where it can, from a newly opened stream where it
// has to go back. One thread.
template <typename Example>
class StreamReader {
 public:
  using Open = std::function<std::unique_ptr<SampleStream<Example>>(std::int64_t epoch)>;

  StreamReader(Open open, std::int64_t size, std::uint64_t trial_seed)
      : open_(std::move(open)), size_(size), trial_seed_(trial_seed) {}

  // The replica that reads the last sample of an epoch finds out whether there are more.
  absl::StatusOr<std::vector<Example>> Read(const Microbatch& microbatch) {
    // Lost, and opened anew next time, unless all goes well.
    std::unique_ptr<SampleStream<Example>> stream = std::move(stream_);
    const std::int64_t epoch = microbatch.epoch + 1;
    if (stream == nullptr || epoch != epoch_ || microbatch.slice.begin < next_) {
      stream = open_(epoch);
      if (stream == nullptr) return NoStreamError(epoch);
      epoch_ = epoch;
      next_ = 0;
    }
    if (const std::int64_t before = microbatch.slice.begin - next_; before > 0) {
      stream->Skip(before);
      next_ += before;
    }
    std::vector<Example> examples;
    examples.reserve(static_cast<std::size_t>(microbatch.slice.size));
    for (std::int64_t i = 0; i < microbatch.slice.size; ++i, ++next_) {
      std::optional<Example> example = stream->Next(SampleSeed(trial_seed_, epoch, next_));
      if (!example) return StreamTooShortError(epoch, next_, size_);
      examples.push_back(*std::move(example));
    }
    if (next_ < size_) {
      stream_ = std::move(stream);
    } else if (stream->Next(0)) {
      return StreamTooLongError(epoch, size_);
    }
    return examples;
  }

 private:
  Open open_;
  std::int64_t size_;
  std::uint64_t trial_seed_;
  std::unique_ptr<SampleStream<Example>> stream_;
  std::int64_t epoch_ = 0;  // of stream_
  std::int64_t next_ = 0;   // sample of stream_
};

// The size of every epoch: what the data set says, or else how many samples its first epoch has.
template <typename Example, typename Batch>
std::int64_t SizeOf(const StreamDataset<Example, Batch>& dataset) {
  if (const std::optional<std::int64_t> size = dataset.size()) return *size;
  const std::unique_ptr<SampleStream<Example>> stream = dataset.Open(1);
  std::int64_t count = 0;
  while (stream != nullptr && stream->Next(0)) ++count;
  return count;
}

}  // namespace espalier
