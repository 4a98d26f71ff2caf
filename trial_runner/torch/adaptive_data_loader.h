#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>

#include "trial_runner/elastic/data_loader_options.h"

namespace espalier {

class AdaptiveDataParallel;
class RemainingEpochs;
class TrainingEngine;

// The passes of a trial over its data: what all loaders have in common. Each sample is dealt
// exactly once an epoch, whatever happens to the group in between; a replica that joins, or a trial
// that is resumed, starts where the group is. An epoch is one pass in adaptive mode too. (AdaptDL's
// epoch then ends after as many scale-invariant steps as a pass at the initial batch size has, and
// deals samples several times to get there; here AdaptiveDataParallel::progress() counts those
// steps.)
//
// Use it from one thread. A mistake in its use ends the program with exit code 2 and a message.
class EpochLoader {
 public:
  EpochLoader(const EpochLoader&) = delete;
  EpochLoader& operator=(const EpochLoader&) = delete;

  // Says how far adaptive mode may grow the batch, under AdaptDL's name: the same as the options
  // max_batch_size, min_atomic_batch_size, max_atomic_batch_size and accumulation. To be called
  // before the first epoch.
  void AutoscaleBatchSize(std::int64_t max_batch_size, AtomicBatchRange per_replica = {},
                          bool accumulation = true);

  // The global batch is of so many samples from the next epoch on; where the present one's first
  // batch is yet to come, from that on. Learning rates are meant for it, unless the options of
  // AdaptiveDataParallel name a base_batch_size. All replicas call it alike; one that joins later,
  // and a trial that goes on from a checkpoint, has what was set. Not in mid-epoch, and not in
  // adaptive mode once training has begun.
  void SetBatchSize(std::int64_t batch_size);

  // Goes on to the next epoch, unless `epochs` are done. The first call waits until this replica is
  // part of a group. Each call after it saves a checkpoint.
  bool NextEpoch(std::int64_t epochs);
  // The epoch that NextEpoch began, from 1.
  std::int64_t epoch() const;

  // The same as a range: for (const std::int64_t epoch : loader.RemainingEpochsUntil(90)) runs from
  // the first epoch that is not done yet, counted from 1, to the 90th. Epochs that were finished
  // before a restart, or before this replica joined, do not occur.
  RemainingEpochs RemainingEpochsUntil(std::int64_t epochs);

 protected:
  // `parallel` must outlive the loader.
  EpochLoader(AdaptiveDataParallel& parallel, std::int64_t dataset_size, DataLoaderOptions options);
  ~EpochLoader() = default;

  TrainingEngine& engine() { return engine_; }
  std::int64_t dataset_size() const { return dataset_size_; }

 private:
  TrainingEngine& engine_;
  std::int64_t dataset_size_;
  DataLoaderOptions options_;
};

// What RemainingEpochsUntil returns. It can be iterated over once.
class RemainingEpochs {
 public:
  struct End {};
  class Iterator {
   public:
    Iterator(EpochLoader& loader, std::int64_t epochs) : loader_(loader), epochs_(epochs) {
      ++*this;
    }
    std::int64_t operator*() const { return loader_.epoch(); }
    Iterator& operator++() {
      more_ = loader_.NextEpoch(epochs_);
      return *this;
    }
    bool operator==(End) const { return !more_; }

   private:
    EpochLoader& loader_;
    std::int64_t epochs_;
    bool more_ = false;
  };

  RemainingEpochs(EpochLoader& loader, std::int64_t epochs) : loader_(loader), epochs_(epochs) {}
  Iterator begin() { return {loader_, epochs_}; }
  End end() const { return {}; }

 private:
  EpochLoader& loader_;
  std::int64_t epochs_;
};

// Deals the samples of a data set that the program holds itself, as indices, in an order that
// depends on the trial's seed alone.
class AdaptiveDataLoader final : public EpochLoader {
 public:
  // Samples are numbered from 0 to dataset_size - 1. `parallel` must outlive the loader.
  AdaptiveDataLoader(AdaptiveDataParallel& parallel, std::int64_t dataset_size,
                     DataLoaderOptions options)
      : EpochLoader(parallel, dataset_size, options) {}

  // Returns this replica's next microbatch, as indices to pass to index_select; nothing when the
  // epoch is over. They are on the host, for a GPU in pinned memory: move them to where the data
  // is. Answer each one with AdaptiveDataParallel::Step.
  std::optional<at::Tensor> NextBatch();

  // Has `step` called with the indices of a batch that counts for nothing: it is to do what the
  // loop does with a batch. See AdaptiveDataParallel::Rehearse. To be called before the first
  // NextEpoch.
  void Rehearse(const std::function<void(const at::Tensor& indices)>& step);
};

}  // namespace espalier
