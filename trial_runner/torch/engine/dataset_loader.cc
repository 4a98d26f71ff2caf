#include "trial_runner/torch/dataset_loader.h"

#include "trial_runner/datasets/batch_feed.h"
#include "trial_runner/torch/engine/training_engine.h"

namespace espalier {

BatchLoader::BatchLoader(AdaptiveDataParallel& parallel, std::int64_t dataset_size,
                         DataLoaderOptions options)
    : EpochLoader(parallel, dataset_size, options), options_(options) {}

BatchLoader::~BatchLoader() = default;

std::uint64_t BatchLoader::trial_seed() { return engine().seed(); }

void BatchLoader::StartReading(Samples samples, const std::function<PrepareBatch()>& make_prepare) {
  std::optional<SampleOrder> order;
  if (samples == Samples::kShuffled) order.emplace(dataset_size(), trial_seed());
  feed_ = std::make_unique<BatchFeed>(options_.workers, options_.prefetch, std::move(order),
                                      make_prepare);
}

PreparedBatch BatchLoader::NextPrepared() {
  const std::optional<SampleSlice> slice = engine().NextMicrobatch();
  if (!slice) return nullptr;
  const Microbatch wanted{engine().epoch() - 1, *slice};
  absl::StatusOr<PreparedBatch> batch = feed_->Next(wanted, [this] { return engine().Forecast(); });
  if (!batch.ok()) EndProcess(batch.status(), kBadUseExitCode);
  engine().BeginMicrobatch();
  return *std::move(batch);
}

}  // namespace espalier
