#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <iterator>
#include <utility>
#include <vector>

#include "tuner/core/state/curve.h"

namespace espalier {

// Curves for tests, with the points they refer to.
class Curves {
 public:
  using StepValue = std::pair<std::int64_t, double>;

  // Values at steps 1, 2, 3, ... of a trial that is complete, or still running.
  const Curve& Complete(std::initializer_list<double> values) { return Add(values, true); }
  const Curve& Running(std::initializer_list<double> values) { return Add(values, false); }
  const Curve& Add(const std::vector<double>& values, bool complete) {
    std::vector<StepValue> points;
    for (const double value : values) points.emplace_back(std::ssize(points) + 1, value);
    return AddPoints(points, complete);
  }
  const Curve& AddPoints(const std::vector<StepValue>& points, bool complete) {
    std::vector<IntermediateValue>& stored = points_.emplace_back(points.size());
    for (std::size_t i = 0; i < points.size(); ++i) {
      stored[i].step = points[i].first;
      stored[i].value = points[i].second;
    }
    all_.push_back({.trial_number = std::ssize(all_),
                    .points = stored,
                    .ended = complete,
                    .complete = complete});
    if (complete && !points.empty()) all_.back().value = points.back().second;
    return all_.back();
  }
  const std::vector<Curve>& all() const { return all_; }

 private:
  std::deque<std::vector<IntermediateValue>> points_;
  std::vector<Curve> all_;
};

}  // namespace espalier
