#include "allocator/policies/speedup.h"

#include <algorithm>

namespace espalier {

int MinSlots(const Job& job) {
  return job.pinned_slots > 0 ? job.pinned_slots : std::max(1, job.min_slots);
}

int MaxSlots(const Job& job) {
  return job.pinned_slots > 0 ? job.pinned_slots : std::max(MinSlots(job), job.max_slots);
}

int GrowthCap(const Job& job) {
  int cap = std::min(MaxSlots(job), std::max(2, 2 * std::max(1, job.max_profiled_replicas)));
  if (job.fixed_batch && job.global_batch > 0) {
    cap = static_cast<int>(std::min<std::int64_t>(cap, job.global_batch));
  }
  return std::max(cap, MinSlots(job));
}

SpeedupCurve::SpeedupCurve(const Job& job) : job_(&job) {
  if (!job.goodput) return;
  for (int replicas = 1; replicas <= MaxSlots(job) && unit_ == 0; ++replicas) {
    unit_ = Goodput(1, replicas) / replicas;
  }
}

double SpeedupCurve::Goodput(int nodes, int replicas) const {
  const GoodputModel& model = *job_->goodput;
  if (!job_->fixed_batch) return model.Optimize(nodes, replicas).goodput;
  const std::int64_t batch = job_->global_batch > 0 ? job_->global_batch : model.bounds().initial;
  return model.AtFixedGlobalBatch(nodes, replicas, batch).goodput;
}

double SpeedupCurve::At(int nodes, int replicas) {
  if (unit_ == 0 || replicas == 0) return replicas;
  const auto [it, inserted] = known_.try_emplace({nodes, replicas}, 0.0);
  if (inserted) it->second = Goodput(nodes, replicas) / unit_;
  return it->second;
}

}  // namespace espalier
