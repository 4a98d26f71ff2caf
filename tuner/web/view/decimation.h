#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace espalier::view {

// The columns of pixels of an axis: `width` of them between `from` and `to`, equal in the axis's
// own scale, which is that of the logarithm or the number itself.
class PixelColumns {
 public:
  // Requires from <= to and width >= 1, and from > 0 for a logarithm.
  PixelColumns(double from, double to, int width, bool log);

  // From 0 on; -1 to the left of them, and `width` to the right.
  int Of(double x) const;
  bool Has(int column) const { return column >= 0 && column < width_; }

 private:
  double Scaled(double x) const;

  double from_;
  double to_;
  int width_;
  bool log_;
  double scaled_from_;
  double per_unit_;
};

// Which points of a curve are enough to paint it: of those that follow one another in one column
// the first, the lowest, the highest and the last, in the order in which they were. A line through
// these paints the same pixels as a line through all, so that a spike is never lost, and a point
// that is added at the end changes nothing but its own column (M4, by Jugel et al., VLDB 2014).
// What is no number in `y` is a gap in the line: of a column that has any, the first and the last
// one stay too. Outside of the columns, the points next to them stay, to which the line goes on.
//
// Returns the indices. `x` and `y` have one size, and `x` holds numbers alone.
std::vector<std::size_t> Decimate(std::span<const double> x, std::span<const double> y,
                                  const PixelColumns& columns);

}  // namespace espalier::view
