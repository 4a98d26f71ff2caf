#include "base/clock.h"

#include <time.h>

#include <mutex>

namespace espalier {

namespace {

std::int64_t Microseconds(clockid_t clock) {
  timespec at{};
  clock_gettime(clock, &at);
  return std::int64_t{at.tv_sec} * 1'000'000 + at.tv_nsec / 1000;
}

// Both clocks at the same moment, as nearly as may be: one that slept between two readings would
// seem to have been set.
ClockReadings ReadClocks() {
  constexpr std::int64_t kApart_us = 1000;
  constexpr int kTries = 8;
  ClockReadings read;
  for (int i = 0; i < kTries; ++i) {
    read.running_us = Microseconds(CLOCK_BOOTTIME);
    read.wall_us = Microseconds(CLOCK_REALTIME);
    if (Microseconds(CLOCK_BOOTTIME) - read.running_us < kApart_us) break;
  }
  return read;
}

}  // namespace

Time FollowedClock::Read(const ClockReadings& now) {
  if (!begun_) {
    begun_ = true;
    last_ = now;
    time_us_ = now.wall_us;
    return Time{time_us_};
  }
  const std::int64_t passed = std::max<std::int64_t>(0, now.running_us - last_.running_us);
  const std::int64_t unchanged = time_us_ + passed;
  const std::int64_t behind = now.wall_us - unchanged;
  if (behind > kMaxFollowed_us) {
    time_us_ = now.wall_us;
  } else if (behind >= 0) {
    time_us_ = unchanged + std::min(behind, passed);
  } else {
    time_us_ = unchanged - std::min(-behind, passed / 2);
  }
  if (passed > 0) last_ = now;
  return Time{time_us_};
}

Time Now() {
  static std::mutex mutex;  // readings are taken in their order
  static FollowedClock clock;
  const std::lock_guard lock(mutex);
  return clock.Read(ReadClocks());
}

}  // namespace espalier
