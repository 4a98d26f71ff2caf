#pragma once

#include <algorithm>

#include "base/clock.h"

namespace espalier {

// When something is to be run again that may be expensive: after `period_s`, or after so long that
// it takes only that share of the time, but not after more than kMostPause_s. What has taken very
// long has most often waited, for a disk or for a service that was away, and would wait again.
class Pacer {
 public:
  static constexpr double kShare = 0.05;
  static constexpr double kMostPause_s = 10;

  explicit Pacer(double period_s) : period_s_(period_s) {}

  bool Due(Time now) const { return now >= next_; }
  double SecondsLeft(Time now) const { return std::max(0.0, SecondsBetween(now, next_)); }
  void Ran(Time from, Time to) {
    const double rest_s = std::min(SecondsBetween(from, to) / kShare, kMostPause_s);
    next_ = After(to, std::max(period_s_, rest_s));
  }

 private:
  double period_s_;
  Time next_;
};

}  // namespace espalier
