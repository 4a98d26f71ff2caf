#pragma once

#include <algorithm>

namespace espalier {

// A share of a processor's time, of which some may be saved up. Times are of any one clock.
class ProcessorShare {
 public:
  // `share`: seconds of a processor in each second; `saved_s`: at most, as much as it begins with.
  ProcessorShare(double share, double saved_s)
      : share_(share), most_s_(saved_s), left_s_(saved_s) {}

  void Spend(double spent_s) { left_s_ -= spent_s; }
  // It was well spent.
  void GiveBack(double spent_s) { left_s_ = std::min(most_s_, left_s_ + spent_s); }

  // How long to wait until there is some again.
  double Wait_s(double now_s) {
    if (now_s > at_s_) left_s_ = std::min(most_s_, left_s_ + share_ * (now_s - at_s_));
    at_s_ = std::max(at_s_, now_s);
    return std::max(0.0, -left_s_ / share_);
  }

 private:
  const double share_;
  const double most_s_;
  double left_s_;
  double at_s_ = 0;
};

}  // namespace espalier
