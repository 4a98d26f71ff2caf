#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tuner/core/promise/forecast.h"
#include "tuner/core/state/curve.h"

namespace espalier {

// How a study's curves go on, learnt from all of them: between each two successive steps, the
// change of the curves that have both, regressed on the value at the first. That covers both that
// poor curves have more to gain and that part of a value is noise. Where few curves go on, the
// change is drawn towards a power law continued from the steps before, and where none does it is
// that power law alone, with a spread as wide as itself. Forecasts chain these steps to the end.
class Continuation {
 public:
  // `max_step` 0: the last step of any curve.
  Continuation(Direction direction, std::span<const Curve> curves, std::int64_t max_step);

  // For a curve that stands at `cost` (see CostOf) at `step`.
  Forecast From(std::int64_t step, double cost) const;
  // For a complete trial: its last value.
  Forecast Certain(double value) const { return {Cost(value), 0}; }
  bool empty() const { return steps_.empty(); }

  // A finite value as the cost that forecasts speak of; one far outside the study's range is drawn
  // to its edge.
  double CostOf(double value) const { return Clip(Cost(value)); }
  // How far typical costs lie apart.
  double scale() const { return scale_; }

 private:
  // The change from one step of the grid to the next is normal with mean `mean` + slope * (value -
  // center) and variance `noise` + slope_variance * (value - center)^2.
  struct Change {
    double mean = 0;
    double center = 0;
    double slope = 0;
    double noise = 0;
    double slope_variance = 0;
  };
  struct Sums {
    double n = 0, y = 0, yy = 0, d = 0, yd = 0, dd = 0;
  };

  double Cost(double value) const;
  double Clip(double cost) const;
  void MakeGrid(std::span<const Curve> curves, std::int64_t max_step);
  void MakeScale(std::span<const Curve> curves);
  std::vector<Sums> Gather(std::span<const Curve> curves) const;
  void GatherCurve(const Curve& curve, std::vector<Sums>& sums) const;
  void FitChanges(const std::vector<Sums>& sums);

  double sign_ = 1;
  double offset_ = 0;          // median of all costs; costs below are relative to it
  double low_ = 0, high_ = 0;  // clipping range of relative costs
  double scale_ = 0;           // how far typical costs lie apart
  std::vector<std::int64_t> steps_;
  std::vector<Change> changes_;  // one less than steps_
};

}  // namespace espalier
