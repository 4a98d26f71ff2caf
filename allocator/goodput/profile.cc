#include "allocator/goodput/profile.h"

#include <algorithm>
#include <cmath>

namespace espalier {

namespace {

// No computer does a microbatch faster; also keeps the logarithm of a mean time finite.
constexpr double kShortestTime = 1e-7;

bool Usable(const ProfileEntry& e) {
  const bool shape =
      e.key.nodes >= 1 && e.key.replicas >= e.key.nodes && e.key.atomic_batch_size >= 1;
  const auto sum = [](double x) { return std::isfinite(x) && x >= 0; };
  return shape && e.accumulation_count >= 0 && e.optimizer_count >= 0 &&
         sum(e.accumulation_time_s) && sum(e.optimizer_time_s) && sum(e.sync_time_s);
}

// Halves a count and scales the sums with it, so that the means stay as they are.
void Fade(ProfileEntry& e) {
  const auto halve = [](std::int64_t& count) {
    const auto before = static_cast<double>(count);
    count = (count + 1) / 2;
    return before > 0 ? static_cast<double>(count) / before : 1.0;
  };
  e.accumulation_time_s *= halve(e.accumulation_count);
  const double scale = halve(e.optimizer_count);
  e.optimizer_time_s *= scale;
  e.sync_time_s *= scale;
}

}  // namespace

void Profile::Add(const ProfileEntry& entry) {
  if (!Usable(entry)) return;
  Sums& sums = shapes_[entry.key];
  sums.last_added = ++added_;
  sums.entry.key = entry.key;
  sums.entry.accumulation_count += entry.accumulation_count;
  sums.entry.accumulation_time_s += entry.accumulation_time_s;
  sums.entry.optimizer_count += entry.optimizer_count;
  sums.entry.optimizer_time_s += entry.optimizer_time_s;
  sums.entry.sync_time_s += entry.sync_time_s;
  if (sums.entry.optimizer_count > kFadeCount) Fade(sums.entry);
  if (shapes_.size() <= kMaxShapes) return;
  shapes_.erase(std::min_element(shapes_.begin(), shapes_.end(), [](const auto& a, const auto& b) {
    return a.second.last_added < b.second.last_added;
  }));
}

std::vector<ProfileObservation> Profile::Observations() const {
  std::vector<ProfileObservation> observations;
  for (const auto& [key, sums] : shapes_) {
    const ProfileEntry& e = sums.entry;
    if (e.optimizer_count == 0) continue;
    const double grad_time =
        e.accumulation_time_s + e.optimizer_time_s - std::min(e.sync_time_s, e.optimizer_time_s);
    const auto microbatches = static_cast<double>(e.accumulation_count + e.optimizer_count);
    observations.push_back(
        {.key = key,
         .grad_time_s = std::max(grad_time / microbatches, kShortestTime),
         .optim_time_s =
             std::max(e.optimizer_time_s / static_cast<double>(e.optimizer_count), kShortestTime)});
  }
  return observations;
}

int Profile::max_replicas() const {
  int most = 0;
  for (const auto& [key, sums] : shapes_) {
    if (sums.entry.optimizer_count > 0) most = std::max(most, key.replicas);
  }
  return most;
}

}  // namespace espalier
