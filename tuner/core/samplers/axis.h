#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "search_spaces/unit_interval.h"

namespace espalier::samplers {

// A value's place on an axis.
struct Coordinate {
  double at = 0;           // in [0, 1]; unused on an unordered axis
  std::uint64_t cell = 0;  // of a discrete axis: which value
};
using Point = std::vector<Coordinate>;

// Whether a choice's options are numbers in ascending or descending order (batch sizes).
bool AreNumbersInOrder(const Choice& choice);

// One parameter as the Parzen estimator sees it: an interval [0, 1], in the logarithm where draws
// are uniform in that, which is cut into a cell for each value of a discrete parameter; or a set of
// options without order.
//
// As in Optuna, each value of a discrete parameter has the cell of all that rounds to it, those at
// the bounds too: the interval reaches half a step beyond them. Its place is the value's own. Where
// Optuna has nothing like it, the interval is that of probabilities: bell-shaped distributions. The
// options of a choice that are numbers in ascending or descending order (batch sizes) are taken as
// ordered, each with a cell of the same width.
class Axis {
 public:
  // `order_numbers`: whether such options are. The distribution must outlive the axis.
  explicit Axis(const Distribution& distribution, bool order_numbers = true);

  bool unordered() const { return unordered_; }
  bool continuous() const { return !unordered_ && count_ == 0; }
  std::uint64_t count() const { return count_; }  // of values or options; 0: continuous
  UnitCell cell(std::uint64_t i) const;           // of an ordered discrete one

  // Requires a value that the distribution contains.
  Coordinate Place(const ParameterValue& value) const;
  Coordinate PlaceAt(double u) const;  // requires an ordered axis
  ParameterValue ValueOf(const Coordinate& coordinate) const;

 private:
  // The multiples of q that are values: first, first + 1, ... in the axis's own scale.
  struct Steps {
    double first = 0;
    double q = 0;    // 0: cells of one width
    double low = 0;  // the bounds of values
    double high = 0;
    bool log = false;
    double begin = 0;  // of the interval, in the axis's scale
    double width = 1;
  };
  template <typename Rounded>
  Steps StepsOf(const Rounded& distribution, bool log) const;
  double EdgeBefore(std::uint64_t i) const;
  double MiddleOf(std::uint64_t i) const;

  const Distribution* distribution_;
  bool unordered_ = false;
  std::uint64_t count_ = 0;
  Steps steps_;
};

}  // namespace espalier::samplers
