#pragma once

#include <optional>

namespace espalier {

// Whether a policy that acts once in `interval_s` should act now. `last_s` is when it last did.
inline bool RoundIsDue(const std::optional<double>& last_s, double now_s, double interval_s) {
  constexpr double kClockRounding_s = 1e-6;
  return !last_s || now_s - *last_s >= interval_s - kClockRounding_s;
}

}  // namespace espalier
