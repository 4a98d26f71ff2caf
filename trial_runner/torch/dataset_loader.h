#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "trial_runner/datasets/dataset.h"
#include "trial_runner/datasets/prepared_batch.h"
#include "trial_runner/datasets/stream_dataset.h"
#include "trial_runner/datasets/stream_reader.h"
#include "trial_runner/torch/adaptive_data_loader.h"
#include "trial_runner/torch/stacking.h"

namespace espalier {

class BatchFeed;

// What all loaders of batches share, whatever the batches are.
class BatchLoader : public EpochLoader {
 protected:
  enum class Samples { kShuffled, kInStreamOrder };

  BatchLoader(AdaptiveDataParallel& parallel, std::int64_t dataset_size, DataLoaderOptions options);
  ~BatchLoader();

  std::uint64_t trial_seed();
  // `make_prepare` is called once for each thread that prepares batches.
  void StartReading(Samples samples, const std::function<PrepareBatch()>& make_prepare);
  // Null when the epoch is over.
  PreparedBatch NextPrepared();
  void RehearsePrepared(const std::function<void(const PreparedBatch&)>& step);

 private:
  DataLoaderOptions options_;
  std::unique_ptr<BatchFeed> feed_;
};

// Deals the samples of a data set to the replicas as batches that are ready to train on, by default
// in an order that depends on the trial's seed alone. With `workers` in the options, threads
// prepare them while the model trains: those that this replica will need if its group and batch
// stay as they are; after a change, batches that no longer fit are dropped. Random draws follow
// from the samples' own seeds, so neither the threads nor the replicas change what a sample looks
// like.
//
//   espalier::DatasetLoader loader(parallel, images, {.batch_size = 128, .workers = 2});
//   while (loader.NextEpoch(90)) {
//     while (const auto batch = loader.NextBatch()) {
//       parallel.Step(cross_entropy(net->forward(batch->first), batch->second));
//     }
//   }
template <typename Batch>
class DatasetLoader final : public BatchLoader {
 public:
  // Both must outlive the loader.
  DatasetLoader(AdaptiveDataParallel& parallel, const Dataset<Batch>& dataset,
                DataLoaderOptions options)
      : BatchLoader(parallel, dataset.size(), options) {
    const auto make_prepare = [&]() -> PrepareBatch {
      return [read = dataset.MakeReader(), seed = trial_seed(),
              placement = placement_](const BatchRequest& request) {
        return Pinned(read({request.indices, request.microbatch.epoch + 1, seed}), *placement);
      };
    };
    StartReading(Samples::kShuffled, make_prepare);
  }

  // The samples of a stream, in its order. Each of the `workers` reads a stream of its own.
  template <typename Example>
  DatasetLoader(AdaptiveDataParallel& parallel, const StreamDataset<Example, Batch>& dataset,
                DataLoaderOptions options)
      : BatchLoader(parallel, SizeOf(dataset), options) {
    const auto make_prepare = [&]() -> PrepareBatch {
      auto reader = std::make_shared<StreamReader<Example>>(
          [&dataset](std::int64_t epoch) { return dataset.Open(epoch); }, dataset_size(),
          trial_seed());
      return [reader = std::move(reader), &dataset, placement = placement_](
                 const BatchRequest& request) -> absl::StatusOr<PreparedBatch> {
        absl::StatusOr<std::vector<Example>> examples = reader->Read(request.microbatch);
        if (!examples.ok()) return examples.status();
        return Pinned(dataset.Collate(*std::move(examples)), *placement);
      };
    };
    StartReading(Samples::kInStreamOrder, make_prepare);
  }

  // Has batches of tensors (see ForEachTensor) come on this device. On the way to a GPU they are
  // put into pinned memory by the thread that prepares them, and copied without waiting. To be
  // called before the first NextBatch.
  void SendTo(c10::Device device) {
    if (device.is_cuda()) {
      placement_->pin = [](Batch& batch) {
        ForEachTensor(batch, [](at::Tensor& t) { t = t.pin_memory(); });
      };
    }
    placement_->send = [device](Batch& batch) {
      ForEachTensor(batch, [&](at::Tensor& t) { t = t.to(device, /*non_blocking=*/true); });
    };
  }

  // Returns this replica's next microbatch; nothing when the epoch is over. Answer each one with
  // AdaptiveDataParallel::Step. Throws what the data set threw for the batch, and tries it again at
  // the next call.
  std::optional<Batch> NextBatch() {
    const PreparedBatch prepared = NextPrepared();
    if (prepared == nullptr) return std::nullopt;
    return Sent(prepared);
  }

  // Has `step` called with a batch that counts for nothing: it is to do what the loop does with a
  // batch. Its samples are read as those of training are, also by the `workers`. See
  // AdaptiveDataParallel::Rehearse. To be called before the first NextEpoch, after SendTo.
  void Rehearse(const std::function<void(const Batch&)>& step) {
    RehearsePrepared([&](const PreparedBatch& prepared) { step(Sent(prepared)); });
  }

 private:
  struct Placement {
    std::function<void(Batch&)> pin;
    std::function<void(Batch&)> send;
  };

  Batch Sent(const PreparedBatch& prepared) {
    Batch& batch = *static_cast<Batch*>(prepared.get());
    if (placement_->send) placement_->send(batch);
    return std::move(batch);
  }

  static PreparedBatch Pinned(Batch batch, const Placement& placement) {
    if (placement.pin) placement.pin(batch);
    return std::make_shared<Batch>(std::move(batch));
  }

  // Shared with the threads.
  std::shared_ptr<Placement> placement_ = std::make_shared<Placement>();
};

template <typename Data>
DatasetLoader(AdaptiveDataParallel&, const Data&, DataLoaderOptions)
    -> DatasetLoader<typename Data::Batch>;

// Returns the batch of these samples outside of training, e.g. in AdaptiveDataParallel::Evaluate.
// Seeds are those of epoch 0, which no training epoch uses.
template <typename Batch>
Batch GetBatch(const Dataset<Batch>& dataset, const at::Tensor& indices) {
  const at::Tensor flat = indices.contiguous();
  return dataset.GetBatch(
      {{flat.template const_data_ptr<std::int64_t>(), static_cast<std::size_t>(flat.numel())},
       /*epoch=*/0,
       /*trial_seed=*/0});
}

}  // namespace espalier
