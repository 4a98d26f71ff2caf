#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <limits>
#include <optional>

namespace espalier {

// A moment, in microseconds since the Unix epoch. Pure code receives it as an argument; only the
// server loop, the agent and the trial runner read a clock.
struct Time {
  std::int64_t us = 0;

  friend constexpr auto operator<=>(const Time&, const Time&) = default;
};

// The most that a user may ask for as a limit or a notice: thirty years.
inline constexpr double kMaxTime_s = 1e9;

// A moment so long after another one. Beyond what Time can hold it is the last moment, or the first
// one where the seconds are negative.
constexpr Time After(Time t, double seconds) {
  using Limits = std::numeric_limits<std::int64_t>;
  constexpr double kBeyond = 0x1p63;
  const double us = seconds * 1e6;
  if (!(us < kBeyond)) return Time{Limits::max()};
  if (us < -kBeyond) return Time{Limits::min()};
  const auto whole = static_cast<std::int64_t>(us);
  if (whole > 0 && t.us > Limits::max() - whole) return Time{Limits::max()};
  if (whole < 0 && t.us < Limits::min() - whole) return Time{Limits::min()};
  return Time{t.us + whole};
}
constexpr Time TimeFromSeconds(double seconds) { return After(Time{}, seconds); }
constexpr double Seconds(Time t) { return static_cast<double>(t.us) * 1e-6; }
constexpr double SecondsBetween(Time from, Time to) {
  return static_cast<double>(to.us - from.us) * 1e-6;
}
// The earlier of two moments, either of which there may not be.
constexpr std::optional<Time> Earlier(std::optional<Time> a, std::optional<Time> b) {
  return a && b ? std::min(a, b) : (a ? a : b);
}

// What the machine's clocks show at one moment.
struct ClockReadings {
  std::int64_t wall_us = 0;     // CLOCK_REALTIME, which may be set to any other time
  std::int64_t running_us = 0;  // CLOCK_BOOTTIME: never set, and runs on while the machine sleeps
};

// A monotonic time that follows the wall clock. Each reading adds what has passed since the one
// before, a suspend included. Where the wall clock has been set to another time meanwhile:
// - by more than kMaxFollowed_us forward, it is followed at once;
// - by less, time runs at twice its speed until it has caught up: after as long as it was behind;
// - back, time runs at half its speed: the wall clock has caught up after twice as long as it was
//   set back.
// Leases and limits, which the same time measures, are off by these factors meanwhile.
class FollowedClock {
 public:
  static constexpr std::int64_t kMaxFollowed_us = std::int64_t{3600} * 1'000'000;

  Time Read(const ClockReadings& now);

 private:
  bool begun_ = false;
  ClockReadings last_;
  std::int64_t time_us_ = 0;
};

// The wall clock, made monotonic within this process: see FollowedClock. From any thread.
Time Now();

}  // namespace espalier
