#include "tests/trial_runner/torch/probe_data.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/randn.h>
#include <c10/util/ArrayRef.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "trial_runner/torch/adaptive_data_parallel.h"
#include "trial_runner/torch/dataset_loader.h"
#include "trial_runner/torch/map_dataset.h"
#include "trial_runner/torch/trial.h"

namespace espalier {
namespace {

using Example = std::tuple<at::Tensor, at::Tensor, std::int64_t>;

// What all the ways read from.
struct Samples {
  at::Tensor inputs;
  at::Tensor targets;
  double noise = 0;
  std::int64_t broken = -1;

  Example At(std::int64_t index, std::uint64_t seed) const {
    if (index == broken) {
      throw std::runtime_error("sample " + std::to_string(index) + " is damaged");
    }
    at::Tensor input = inputs[index];
    if (noise > 0) {
      input = input.add(at::randn(input.sizes(), at::detail::createCPUGenerator(seed)), noise);
    }
    return {input, targets[index], index};
  }
};

class MappedSamples final : public MapDataset<Example> {
 public:
  explicit MappedSamples(Samples samples) : samples_(std::move(samples)) {}
  std::int64_t size() const override { return samples_.inputs.size(0); }
  Example Get(std::int64_t index, std::uint64_t seed) const override {
    return samples_.At(index, seed);
  }

 private:
  Samples samples_;
};

// As torch::data's are; has no seeds.
struct TorchSamples {
  Samples samples;
  std::optional<std::size_t> size() const {
    return static_cast<std::size_t>(samples.inputs.size(0));
  }
  Stacked<Example> get_batch(c10::ArrayRef<std::size_t> indices) {
    std::vector<Example> examples;
    for (const std::size_t i : indices)
      examples.push_back(samples.At(static_cast<std::int64_t>(i), 0));
    return Stacking<Example>::Of(examples);
  }
};

// Each epoch's stream starts at another sample.
class SampleStreams final : public IterableDataset<Example> {
 public:
  SampleStreams(Samples samples, std::int64_t says) : samples_(std::move(samples)), says_(says) {}
  std::optional<std::int64_t> size() const override {
    return says_ > 0 ? std::optional(says_) : std::nullopt;
  }
  std::unique_ptr<Stream> Open(std::int64_t epoch) const override {
    return std::make_unique<Reading>(samples_, epoch);
  }

 private:
  class Reading final : public SampleStream<Example> {
   public:
    Reading(const Samples& samples, std::int64_t epoch) : samples_(samples), epoch_(epoch) {}
    std::optional<Example> Next(std::uint64_t seed) override {
      const std::int64_t size = samples_.inputs.size(0);
      if (next_ == size) return std::nullopt;
      return samples_.At((next_++ + 17 * epoch_) % size, seed);
    }

   private:
    const Samples& samples_;
    std::int64_t epoch_;
    std::int64_t next_ = 0;
  };

  Samples samples_;
  std::int64_t says_;
};

ProbeBatch FromFields(std::tuple<at::Tensor, at::Tensor, at::Tensor> fields) {
  return {std::get<2>(fields), std::get<0>(fields), std::get<1>(fields)};
}

}  // namespace

template <typename Loader>
void ProbeData::DealBy(const std::shared_ptr<Loader>& loader) {
  loader_ = loader.get();
  next_ = [loader]() -> std::optional<ProbeBatch> {
    auto batch = loader->NextBatch();
    if (!batch) return std::nullopt;
    return FromFields(*std::move(batch));
  };
}

ProbeData::ProbeData(Trial& trial, AdaptiveDataParallel& parallel, const at::Tensor& inputs,
                     const at::Tensor& targets, DataLoaderOptions options) {
  using Loader = DatasetLoader<Stacked<Example>>;
  const std::string way = trial.Get("data", "indices");
  options.workers = trial.Get("workers", 0);
  options.prefetch = trial.Get("prefetch", 2);
  const Samples samples{inputs, targets, trial.Get("noise", 0.0),
                        trial.Get("broken_sample", std::int64_t{-1})};
  if (way == "indices") {
    auto loader = std::make_shared<AdaptiveDataLoader>(parallel, inputs.size(0), options);
    loader_ = loader.get();
    next_ = [loader, inputs, targets]() -> std::optional<ProbeBatch> {
      const auto batch = loader->NextBatch();
      if (!batch) return std::nullopt;
      return ProbeBatch{*batch, inputs.index_select(0, *batch), targets.index_select(0, *batch)};
    };
  } else if (way == "map") {
    auto dataset = std::make_shared<MappedSamples>(samples);
    dataset_ = dataset;
    DealBy(std::make_shared<Loader>(parallel, *dataset, options));
  } else if (way == "torch") {
    auto dataset = std::make_shared<TorchDataset<TorchSamples>>(TorchSamples{samples});
    dataset_ = dataset;
    DealBy(std::make_shared<Loader>(parallel, *dataset, options));
  } else if (way == "stream") {
    auto dataset = std::make_shared<SampleStreams>(samples, trial.Get("says", std::int64_t{0}));
    dataset_ = dataset;
    DealBy(std::make_shared<Loader>(parallel, *dataset, options));
  } else {
    std::fprintf(stderr, "data is \"%s\": want indices, map, torch or stream\n", way.c_str());
    std::exit(2);
  }
}

}  // namespace espalier
