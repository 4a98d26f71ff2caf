#include "trial_runner/torch/adaptive_data_loader.h"

#include "trial_runner/torch/adaptive_data_parallel.h"
#include "trial_runner/torch/training_engine.h"

namespace espalier {

AdaptiveDataLoader::AdaptiveDataLoader(AdaptiveDataParallel& parallel, std::int64_t dataset_size,
                                       DataLoaderOptions options)
    : engine_(parallel.engine()) {
  engine_.SetData(dataset_size, options);
}

bool AdaptiveDataLoader::NextEpoch(std::int64_t epochs) { return engine_.NextEpoch(epochs); }
std::int64_t AdaptiveDataLoader::epoch() const { return engine_.epoch(); }
std::optional<at::Tensor> AdaptiveDataLoader::NextBatch() { return engine_.NextBatch(); }

}  // namespace espalier
