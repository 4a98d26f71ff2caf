#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <optional>

namespace espalier {

// A moment, in microseconds since the Unix epoch. Pure code receives it as an argument; only the
// server loop, the agent and the trial runner read a clock.
struct Time {
  std::int64_t us = 0;

  friend constexpr auto operator<=>(const Time&, const Time&) = default;
};

constexpr Time TimeFromSeconds(double seconds) {
  return Time{static_cast<std::int64_t>(seconds * 1e6)};
}
constexpr double Seconds(Time t) { return static_cast<double>(t.us) * 1e-6; }
constexpr double SecondsBetween(Time from, Time to) {
  return static_cast<double>(to.us - from.us) * 1e-6;
}
// The earlier of two moments, either of which there may not be.
constexpr std::optional<Time> Earlier(std::optional<Time> a, std::optional<Time> b) {
  return a && b ? std::min(a, b) : (a ? a : b);
}
constexpr Time After(Time t, double seconds) {
  return Time{t.us + static_cast<std::int64_t>(seconds * 1e6)};
}

// The wall clock, made monotonic within this process: it never steps back.
Time Now();

}  // namespace espalier
