#include "base/clock.h"

#include <chrono>

namespace espalier {

Time Now() {
  using std::chrono::duration_cast;
  using std::chrono::microseconds;
  // One reading of the wall clock fixes the origin; the steady clock carries on from there.
  static const auto kSteadyOrigin = std::chrono::steady_clock::now();
  static const auto kWallOrigin = std::chrono::system_clock::now();
  const auto since = std::chrono::steady_clock::now() - kSteadyOrigin;
  return Time{duration_cast<microseconds>(kWallOrigin.time_since_epoch()).count() +
              duration_cast<microseconds>(since).count()};
}

}  // namespace espalier
