#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "base/clock.h"

namespace espalier {

// Virtual time, and what is going to happen in it: in order of time, and at one moment in the order
// in which it was put down. Nothing is ever taken off: what may be void by the time it comes must
// find that out itself. Pure; one owner.
class Agenda {
 public:
  explicit Agenda(Time start) : now_(start) {}

  Time now() const { return now_; }
  // When the next thing happens; nullopt: nothing is left.
  std::optional<Time> Next() const {
    if (happenings_.empty()) return std::nullopt;
    return happenings_.begin()->first;
  }

  // `at` is not before now.
  void Add(Time at, std::function<void()> happening) {
    happenings_.emplace(at, std::move(happening));
  }
  void In(double delay_s, std::function<void()> happening) {
    Add(After(now_, delay_s), std::move(happening));
  }
  // Time moves on to the next thing, which happens and may add others. Requires that there is one.
  void HappenNext() {
    const auto next = happenings_.extract(happenings_.begin());
    now_ = std::max(now_, next.key());
    next.mapped()();
  }
  // Time passes without anything happening; what was due until then happens late.
  void PassTo(Time to) { now_ = to; }

 private:
  Time now_;
  std::multimap<Time, std::function<void()>> happenings_;
};

}  // namespace espalier
