#pragma once

#include <c10/util/ArrayRef.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "trial_runner/datasets/dataset.h"
#include "trial_runner/datasets/stream_dataset.h"
#include "trial_runner/torch/stacking.h"

namespace espalier {

// A data set that gives single samples: a tensor, a number, a pair or tuple of such, or a
// torch::data::Example. The same rules hold for Get as for Dataset::GetBatch.
template <typename ExampleType>
class MapDataset : public Dataset<Stacked<ExampleType>> {
 public:
  using Example = ExampleType;

  // The sample with this index. What is random about it must follow from the seed, which differs
  // between trials, epochs and samples and depends on nothing else.
  virtual Example Get(std::int64_t index, std::uint64_t seed) const = 0;

  Stacked<Example> GetBatch(const SampleSelection& samples) const override {
    std::vector<Example> examples;
    examples.reserve(samples.indices.size());
    for (std::size_t i = 0; i < samples.indices.size(); ++i) {
      examples.push_back(Get(samples.indices[i], samples.SeedOf(i)));
    }
    return Stacking<Example>::Of(examples);
  }
};

// A data set that can only be read in its order, of the same kinds of examples.
template <typename ExampleType>
class IterableDataset : public StreamDataset<ExampleType, Stacked<ExampleType>> {
 public:
  Stacked<ExampleType> Collate(std::vector<ExampleType> examples) const override {
    return Stacking<ExampleType>::Of(examples);
  }
};

// A data set of torch::data::datasets (`size()` and `get_batch(ArrayRef<size_t>)`), also one with
// transforms: TorchDataset data(MNIST(folder).map(Stack<>())). Each thread works on a copy of its
// own, as in torch::data's own loader.
template <typename TorchData>
class TorchDataset final : public Dataset<decltype(std::declval<TorchData&>().get_batch(
                               std::declval<c10::ArrayRef<std::size_t>>()))> {
 public:
  using Batch = typename TorchDataset::Dataset::Batch;
  using Reader = typename TorchDataset::Dataset::Reader;

  explicit TorchDataset(TorchData data) : data_(std::move(data)) {}

  std::int64_t size() const override { return static_cast<std::int64_t>(data_.size().value_or(0)); }
  Batch GetBatch(const SampleSelection& samples) const override { return MakeReader()(samples); }
  Reader MakeReader() const override {
    return [data = data_](const SampleSelection& samples) mutable {
      const std::vector<std::size_t> indices(samples.indices.begin(), samples.indices.end());
      return data.get_batch(indices);
    };
  }

 private:
  TorchData data_;
};

}  // namespace espalier
