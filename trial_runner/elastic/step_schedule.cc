#include "trial_runner/elastic/step_schedule.h"

#include <algorithm>

#include "base/check.h"

namespace espalier {

SampleSlice CutEvenly(const SampleSlice& slice, std::int64_t index, std::int64_t count) {
  ESPALIER_CHECK(index >= 0 && index < count, "no such part");
  const std::int64_t size = slice.size / count;
  const std::int64_t longer = slice.size % count;  // the first parts have one more
  return {slice.begin + index * size + std::min(index, longer), size + (index < longer ? 1 : 0)};
}

StepPlan PlanStep(std::int64_t cursor, std::int64_t epoch_size, std::int64_t batch_size, int rank,
                  int replicas, std::int64_t max_atomic, bool aligned) {
  ESPALIER_CHECK(cursor >= 0 && cursor < epoch_size, "the epoch is over");
  ESPALIER_CHECK(batch_size > 0 && max_atomic > 0, "sizes are positive");
  StepPlan plan;
  plan.samples = std::min(batch_size, epoch_size - cursor);
  const SampleSlice share = CutEvenly({cursor, plan.samples}, rank, replicas);
  if (share.size == 0) return plan;
  // The first share is the largest.
  const std::int64_t cut =
      aligned ? CutEvenly({cursor, plan.samples}, 0, replicas).size : share.size;
  const std::int64_t count = std::min(share.size, (cut + max_atomic - 1) / max_atomic);
  for (std::int64_t i = 0; i < count; ++i) {
    plan.microbatches.push_back(CutEvenly(share, i, count));
  }
  return plan;
}

}  // namespace espalier
