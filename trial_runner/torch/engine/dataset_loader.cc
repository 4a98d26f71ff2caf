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

void BatchLoader::RehearsePrepared(const std::function<void(const PreparedBatch&)>& step) {
  const std::int64_t samples = engine().RehearsedSamples();
  const Microbatch first{0, {0, samples}};
  const auto alone = [samples] {
    return MicrobatchForecast({.epochs = 1,
                               .epoch_size = samples,
                               .batch_size = samples,
                               .replicas = 1,
                               .max_atomic = samples});
  };
  const absl::StatusOr<PreparedBatch> batch = feed_->Next(first, alone);
  if (!batch.ok()) EndProcess(batch.status(), kBadUseExitCode);
  engine().Rehearse([&] { step(*batch); });
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
