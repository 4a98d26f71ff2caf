#include "trial_runner/datasets/dataset.h"

#include "base/random.h"

namespace espalier {

std::uint64_t SampleSeed(std::uint64_t trial_seed, std::int64_t epoch, std::int64_t index) {
  const std::uint64_t of_epoch =
      MixSeed(MixSeed(trial_seed, "sample"), static_cast<std::uint64_t>(epoch));
  return MixSeed(of_epoch, static_cast<std::uint64_t>(index));
}

}  // namespace espalier
