#include "trial_runner/elastic/batch_tuner.h"

#include <algorithm>

#include "allocator/goodput/fit.h"

namespace espalier {

void BatchTuner::Add(const std::vector<ProfileEntry>& entries) {
  for (const ProfileEntry& entry : entries) profile_.Add(entry);
}

std::optional<BatchChoice> BatchTuner::Choose(int nodes, int replicas, const GradientNoise& noise,
                                              std::int64_t batch_size,
                                              std::int64_t atomic_batch_size) {
  const std::vector<ProfileObservation> seen = profile_.Observations();
  if (std::none_of(seen.begin(), seen.end(),
                   [&](const auto& o) { return o.key.replicas == replicas; })) {
    return std::nullopt;
  }
  params_ = Fit(profile_, params_);
  const GoodputModel model(*params_, noise, bounds_);
  BatchChoice best = model.Optimize(nodes, replicas);
  // Rounding up to whole samples may have gone past the limit; a smaller microbatch has not.
  while (best.atomic_batch_size > bounds_.min_atomic && best.global() > bounds_.max_global) {
    --best.atomic_batch_size;
  }
  if (!(best.goodput > 0) || best.global() < bounds_.initial) return std::nullopt;
  const std::int64_t share = (batch_size + replicas - 1) / replicas;
  const std::int64_t steps = (share + atomic_batch_size - 1) / atomic_batch_size - 1;
  const double present = model.Goodput(nodes, replicas, atomic_batch_size, steps);
  if (best.goodput < kMinImprovement * present) return std::nullopt;
  return best;
}

}  // namespace espalier
