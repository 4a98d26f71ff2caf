#include "trial_runner/elastic/step_profile.h"

#include <utility>

namespace espalier {

void StepProfile::Add(const ProfileKey& shape, const MeasuredStepTimes& times) {
  if (!std::exchange(warm_[shape], true)) return;
  ProfileEntry& sum = sums_[shape];
  sum.key = shape;
  sum.accumulation_count += times.accumulation_count;
  sum.accumulation_time_s += times.accumulation_time_s;
  sum.optimizer_count += 1;
  sum.optimizer_time_s += times.optimizer_time_s;
  sum.sync_time_s += times.sync_time_s;
}

std::vector<ProfileEntry> StepProfile::Take() {
  std::vector<ProfileEntry> entries;
  for (const auto& [shape, sum] : sums_) entries.push_back(sum);
  sums_.clear();
  return entries;
}

}  // namespace espalier
