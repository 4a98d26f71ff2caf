#include "tuner/simulator/process_starts.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace espalier {

namespace {

constexpr double kDone_s = 1e-9;  // so little processor time is none

}  // namespace

double ProcessStarts::Rate() const {
  const auto count = static_cast<double>(left_cpu_s_.size());
  return load_.cores > 0 ? std::min(1.0, load_.cores / count) : 1.0;
}

void ProcessStarts::Advance(Time now) {
  const double past_s = SecondsBetween(since_, now);
  since_ = now;
  if (left_cpu_s_.empty()) return;
  const double each_s = past_s * Rate();
  for (auto& [replica, left_s] : left_cpu_s_) left_s -= each_s;
}

void ProcessStarts::Begin(ReplicaId replica, Time now) {
  Advance(now);
  Random random(MixSeed(load_.seed, static_cast<std::uint64_t>(replica.value)));
  left_cpu_s_[replica] = load_.cpu_s * (1 + load_.spread * random.Uniform(-1, 1));
}

void ProcessStarts::GiveUp(ReplicaId replica, Time now) {
  Advance(now);
  left_cpu_s_.erase(replica);
}

std::vector<ReplicaId> ProcessStarts::TakeDone(Time now) {
  Advance(now);
  std::vector<ReplicaId> done;
  for (const auto& [replica, left_s] : left_cpu_s_) {
    if (left_s <= kDone_s) done.push_back(replica);
  }
  for (const ReplicaId replica : done) left_cpu_s_.erase(replica);
  return done;
}

std::optional<Time> ProcessStarts::NextDone() const {
  if (left_cpu_s_.empty()) return std::nullopt;
  const auto least =
      std::min_element(left_cpu_s_.begin(), left_cpu_s_.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  // Up to the next microsecond, or it would be looked at before it is done.
  const double wait_us = std::ceil(std::max(0.0, least->second) / Rate() * 1e6);
  return Time{since_.us + static_cast<std::int64_t>(wait_us)};
}

}  // namespace espalier
