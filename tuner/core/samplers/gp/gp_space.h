#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <optional>
#include <vector>

#include "search_spaces/search_space.h"

namespace espalier::samplers::gp {

// Points of the model, one a row, one axis a column.
using Points = Eigen::MatrixXd;
using Point = Eigen::RowVectorXd;

enum class AxisKind {
  kContinuous,
  kGrid,     // values in an order, at their places in [0, 1]
  kOptions,  // without an order; a point has the number of its option
};

// Where a number stands that a trial does not have, and the option that one does not have which
// depends on another: in the middle, and at an option of its own.
inline constexpr double kInactiveNumber = 0.5;
inline constexpr double kInactiveOption = -1;

// A search space as the model sees it: an axis for each parameter that has more than one value, the
// unit interval where values have an order. A parameter's place there is the probability of drawing
// less, so that logarithms are straightened. Options that are numbers in ascending or descending
// order (batch sizes) are taken as ordered.
class GpSpace {
 public:
  // The space must outlive this.
  explicit GpSpace(const SearchSpace& space);

  Eigen::Index axes() const { return static_cast<Eigen::Index>(axes_.size()); }
  AxisKind kind(Eigen::Index axis) const { return At(axis).kind; }
  bool unordered(Eigen::Index axis) const { return kind(axis) == AxisKind::kOptions; }
  std::size_t dimension(Eigen::Index axis) const { return At(axis).dimension; }
  // Of an axis that is not continuous: how many values it has.
  std::int64_t values(Eigen::Index axis) const { return At(axis).values; }
  // Of an axis that is not continuous: where its i-th value is.
  double PlaceOfValue(Eigen::Index axis, std::int64_t i) const;
  // Of a grid: the number of the value whose place is nearest.
  std::int64_t Nearest(Eigen::Index axis, double place) const;

  // nullopt: the space does not contain the parameters.
  std::optional<Point> PlaceOf(const Parameters& parameters) const;

  // A point of the unit cube, moved to a value on each axis that is not continuous. What is
  // inactive keeps its place.
  Point FromCube(const Point& cube) const;

  // Which of the axes are active by the options of a point.
  std::vector<bool> Active(const Point& point) const;
  // The point with what is inactive where all such are.
  Point Masked(const Point& point) const;

  // The parameters of a point, in the space's order; parameters that have but one value are there.
  Parameters ParametersAt(const Point& point) const;

 private:
  struct Axis {
    std::size_t dimension;
    AxisKind kind;
    std::int64_t values;
    std::vector<double> places{};  // of a grid's values, ascending
  };

  const Axis& At(Eigen::Index axis) const { return axes_[static_cast<std::size_t>(axis)]; }
  double PlaceOnAxis(Eigen::Index axis, const ParameterValue& value) const;
  ParameterValue ValueOnAxis(Eigen::Index axis, double place) const;

  const SearchSpace* space_;
  std::vector<Axis> axes_;
  std::vector<std::optional<Eigen::Index>> axis_of_;  // by dimension
};

}  // namespace espalier::samplers::gp
