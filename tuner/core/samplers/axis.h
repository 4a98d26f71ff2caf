#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "search_spaces/unit_interval.h"

namespace espalier::samplers {

// A value's place on an axis.
struct Coordinate {
  double at = 0;         // in [0, 1]; unused on an unordered axis
  std::size_t cell = 0;  // of a discrete axis: which value
};
using Point = std::vector<Coordinate>;

// One parameter as the Parzen estimator sees it: an interval [0, 1] on which the prior is uniform,
// cut into a cell for each value where there are few, or a set of options without order. Options
// that are numbers in ascending or descending order (batch sizes) are taken as ordered.
class Axis {
 public:
  explicit Axis(const Distribution& distribution);

  bool unordered() const { return unordered_; }
  bool continuous() const { return !unordered_ && cells_.empty(); }
  std::size_t options() const { return options_; }                 // of an unordered axis
  const UnitCell& cell(std::size_t i) const { return cells_[i]; }  // of an ordered discrete one

  // Requires a value that the distribution contains.
  Coordinate Place(const ParameterValue& value) const;
  Coordinate PlaceAt(double u) const;  // requires an ordered axis
  ParameterValue ValueOf(const Coordinate& coordinate) const;

 private:
  const Distribution* distribution_;
  bool unordered_ = false;
  std::size_t options_ = 0;
  std::vector<UnitCell> cells_;
};

}  // namespace espalier::samplers
