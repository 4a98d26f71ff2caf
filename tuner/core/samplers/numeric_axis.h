#pragma once

#include <cstdint>
#include <optional>

#include "search_spaces/distribution.h"

namespace espalier::samplers {

// A numeric parameter as a straight line on which its values lie between 0 and 1, for models with
// distances and normal distributions (in the manner of Optuna's transform of search spaces):
// logarithmic ones by their logarithm, whole ones and multiples of q by their number, unbounded
// ones within four standard deviations of their middle. Rounded logarithmic ones are rounded where
// a value is made of a place.
class NumericAxis {
 public:
  enum class Steps {
    kCells,   // value k of n owns [k/n, (k+1)/n], and lies in its middle
    kPoints,  // value k of n lies at k/(n-1); logarithmic ones at both ends own half a cell less
  };

  // nullopt for a choice, and where there is but one value. The distribution must outlive the axis.
  static std::optional<NumericAxis> Of(const Distribution& distribution, Steps steps);

  // Requires a value that the distribution contains. Those of unbounded ones may lie beyond 0
  // and 1.
  double Place(const ParameterValue& value) const;
  // The value nearest to a place, which may be beyond 0 and 1.
  ParameterValue ValueAt(double place) const;

  // How many values there are on a line of steps; 0 for a continuous or logarithmic one.
  double count() const { return count_; }
  double IndexAt(double place) const;  // of the nearest value, for a line of steps
  ParameterValue ValueOf(double index) const;

 private:
  enum class Scale { kLinear, kLog, kSteps };

  NumericAxis(const Distribution& distribution, Steps steps)
      : distribution_(&distribution), steps_(steps) {}
  void SetRange(Scale scale, double low, double high);
  void SetSteps(double first, double count, double q);
  void SetLogCells(double q, double low, double high);

  const Distribution* distribution_;
  Steps steps_;
  Scale scale_ = Scale::kLinear;
  double low_ = 0;  // of the line, in the logarithm where it is one
  double high_ = 1;
  double least_ = 0;  // of the values
  double most_ = 0;
  double q_ = 0;      // of a rounded one
  double first_ = 0;  // of the multiples of q
  double count_ = 0;
};

}  // namespace espalier::samplers
