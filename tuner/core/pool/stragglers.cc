#include "tuner/core/pool/stragglers.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace espalier {

namespace {

constexpr double kWorthwhileGain = 1.05;

// Requires at least one value. Of an even number, the mean of the two in the middle.
double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace

void StragglerDetector::Reset(Time now) {
  paces_.clear();
  suspects_ = false;
  settled_from_ = After(now, kStragglerSettle_s);
}

// How much longer the slowest replica computes than the median of the others; 0 if too little is
// known of any.
double StragglerDetector::SlowestRatio(std::span<const ReplicaTime> times) {
  std::vector<double> step_times;
  for (const ReplicaTime& time : times) {
    if (time.steps < kStragglerSteps) return 0;
    step_times.push_back(time.compute_time_s / static_cast<double>(time.steps));
  }
  if (step_times.size() < 2) return 0;
  const auto slowest = std::max_element(step_times.begin(), step_times.end());
  const double time_s = *slowest;
  step_times.erase(slowest);
  const double median = Median(std::move(step_times));
  return median > 0 ? time_s / median : 0;
}

std::optional<Straggler> StragglerDetector::Observe(Time now, std::span<const ReplicaTime> times) {
  suspects_ = SlowestRatio(times) > kStragglerRatio;
  if (now < settled_from_ || times.size() < 2) return std::nullopt;
  const bool same = paces_.size() == times.size() &&
                    std::all_of(times.begin(), times.end(),
                                [&](const ReplicaTime& t) { return paces_.contains(t.replica); });
  if (!same) paces_.clear();
  for (const ReplicaTime& time : times) {
    Pace& pace = paces_[time.replica];
    pace.steps += std::max<std::int64_t>(0, time.steps);
    pace.compute_time_s += time.compute_time_s > 0 ? time.compute_time_s : 0;
  }
  if (!Gathered()) return std::nullopt;
  Look();
  std::optional<Straggler> slowest;
  for (const auto& [replica, pace] : paces_) {
    if (pace.slow_looks < kStragglerWindow) continue;
    const double ratio = Median(std::vector<double>(pace.ratios.begin(), pace.ratios.end()));
    if (!slowest || ratio > slowest->ratio) slowest = Straggler{replica, ratio};
  }
  return slowest;
}

bool StragglerDetector::Gathered() const {
  return std::all_of(paces_.begin(), paces_.end(),
                     [](const auto& entry) { return entry.second.steps >= kStragglerSteps; });
}

void StragglerDetector::Look() {
  std::map<ReplicaId, double> step_times;
  for (const auto& [replica, pace] : paces_) {
    step_times[replica] = pace.compute_time_s / static_cast<double>(pace.steps);
  }
  for (auto& [replica, pace] : paces_) {
    std::vector<double> others;
    for (const auto& [other, step_time_s] : step_times) {
      if (other != replica) others.push_back(step_time_s);
    }
    const double median = Median(std::move(others));
    const double ratio = median > 0 ? step_times[replica] / median : 0;
    if (ratio > kStragglerRatio) {
      pace.ratios[pace.slow_looks % kStragglerWindow] = ratio;
      ++pace.slow_looks;
    } else {
      pace.slow_looks = 0;
    }
    pace.steps = 0;
    pace.compute_time_s = 0;
  }
}

bool FasterWithout(int replicas, double ratio) {
  if (replicas < 2) return false;
  const auto others = static_cast<double>(replicas - 1);
  // With it a step takes `ratio`; without it each of the others computes the more.
  return ratio > kWorthwhileGain * static_cast<double>(replicas) / others;
}

}  // namespace espalier
