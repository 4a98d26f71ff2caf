#include "trial_runner/torch/adaptive_data_loader.h"

#include "trial_runner/torch/adaptive_data_parallel.h"
#include "trial_runner/torch/engine/training_engine.h"

namespace espalier {

EpochLoader::EpochLoader(AdaptiveDataParallel& parallel, std::int64_t dataset_size,
                         DataLoaderOptions options)
    : engine_(parallel.engine()), dataset_size_(dataset_size), options_(options) {
  engine_.SetData(dataset_size_, options_);
}

void EpochLoader::AutoscaleBatchSize(std::int64_t max_batch_size, AtomicBatchRange per_replica,
                                     bool accumulation) {
  options_.max_batch_size = max_batch_size;
  options_.min_atomic_batch_size = per_replica.min;
  options_.max_atomic_batch_size = per_replica.max;
  options_.accumulation = accumulation;
  engine_.SetData(dataset_size_, options_);
}

void EpochLoader::SetBatchSize(std::int64_t batch_size) {
  if (engine_.group().joined()) {
    engine_.SetBatchSize(batch_size);
    return;
  }
  options_.batch_size = batch_size;
  engine_.SetData(dataset_size_, options_);
}

bool EpochLoader::NextEpoch(std::int64_t epochs) { return engine_.NextEpoch(epochs); }
std::int64_t EpochLoader::epoch() const { return engine_.epoch(); }

RemainingEpochs EpochLoader::RemainingEpochsUntil(std::int64_t epochs) { return {*this, epochs}; }

std::optional<at::Tensor> AdaptiveDataLoader::NextBatch() { return engine().NextBatch(); }

void AdaptiveDataLoader::Rehearse(const std::function<void(const at::Tensor& indices)>& step) {
  const at::Tensor indices = engine().RehearsedIndices();
  engine().Rehearse([&] { step(indices); });
}

}  // namespace espalier
