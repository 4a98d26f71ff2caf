#include "tuner/core/samplers/gp/gp_space.h"

#include <algorithm>
#include <cmath>

#include "search_spaces/unit_interval.h"
#include "tuner/core/samplers/axis.h"
#include "tuner/core/samplers/configurations.h"

namespace espalier::samplers::gp {
namespace {

// Past this many values a grid is as good as continuous.
constexpr std::uint64_t kMostOnGrid = 4096;

AxisKind KindOf(const Distribution& distribution) {
  if (const auto* choice = std::get_if<Choice>(&distribution)) {
    return AreNumbersInOrder(*choice) ? AxisKind::kGrid : AxisKind::kOptions;
  }
  const std::optional<std::uint64_t> values = Cardinality(distribution);
  return values && *values <= kMostOnGrid ? AxisKind::kGrid : AxisKind::kContinuous;
}

std::vector<double> PlacesOf(const Distribution& distribution, std::uint64_t values) {
  std::vector<double> places;
  for (std::uint64_t i = 0; i < values; ++i) {
    if (std::holds_alternative<Choice>(distribution)) {
      places.push_back((static_cast<double>(i) + 0.5) / static_cast<double>(values));
    } else {
      places.push_back(ToUnit(distribution, ValueAt(distribution, i)).Middle());
    }
  }
  return places;
}

}  // namespace

GpSpace::GpSpace(const SearchSpace& space) : space_(&space) {
  const auto& dimensions = space.dimensions();
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    const std::uint64_t values = Cardinality(dimensions[i].distribution).value_or(0);
    axis_of_.emplace_back();
    if (values == 1) continue;
    const AxisKind kind = KindOf(dimensions[i].distribution);
    axis_of_.back() = axes();
    axes_.push_back({i, kind, 0});
    if (kind == AxisKind::kContinuous) continue;
    axes_.back().values = static_cast<std::int64_t>(values);
    if (kind == AxisKind::kGrid) axes_.back().places = PlacesOf(dimensions[i].distribution, values);
  }
}

double GpSpace::PlaceOfValue(Eigen::Index axis, std::int64_t i) const {
  return unordered(axis) ? static_cast<double>(i) : At(axis).places[static_cast<std::size_t>(i)];
}

std::int64_t GpSpace::Nearest(Eigen::Index axis, double place) const {
  const std::vector<double>& places = At(axis).places;
  const auto above = std::lower_bound(places.begin(), places.end(), place);
  if (above == places.begin()) return 0;
  const bool is_above = above != places.end() && *above - place < place - *(above - 1);
  return above - places.begin() - (is_above ? 0 : 1);
}

double GpSpace::PlaceOnAxis(Eigen::Index axis, const ParameterValue& value) const {
  const Distribution& distribution = space_->dimensions()[At(axis).dimension].distribution;
  if (kind(axis) == AxisKind::kContinuous) return ToUnit(distribution, value).Middle();
  return PlaceOfValue(axis, static_cast<std::int64_t>(*IndexOf(distribution, value)));
}

ParameterValue GpSpace::ValueOnAxis(Eigen::Index axis, double place) const {
  const Distribution& distribution = space_->dimensions()[At(axis).dimension].distribution;
  if (kind(axis) == AxisKind::kContinuous) return FromUnit(distribution, place);
  const std::int64_t i = unordered(axis) ? static_cast<std::int64_t>(place) : Nearest(axis, place);
  return ValueAt(distribution, static_cast<std::uint64_t>(i));
}

std::optional<Point> GpSpace::PlaceOf(const Parameters& parameters) const {
  Point point(axes());
  for (std::size_t i = 0; i < axis_of_.size(); ++i) {
    if (!space_->IsActive(i, parameters)) {
      if (const auto axis = axis_of_[i]) {
        point[*axis] = unordered(*axis) ? kInactiveOption : kInactiveNumber;
      }
      continue;
    }
    const ParameterValue* value = ValueOf(*space_, i, parameters);
    if (value == nullptr) return std::nullopt;
    if (const auto axis = axis_of_[i]) point[*axis] = PlaceOnAxis(*axis, *value);
  }
  return point;
}

Point GpSpace::FromCube(const Point& cube) const {
  Point point = cube;
  for (Eigen::Index axis = 0; axis < axes(); ++axis) {
    if (unordered(axis)) {
      const auto options = static_cast<double>(values(axis));
      point[axis] = std::min(std::floor(cube[axis] * options), options - 1);
    } else if (kind(axis) == AxisKind::kGrid) {
      point[axis] = PlaceOfValue(axis, Nearest(axis, cube[axis]));
    }
  }
  return point;
}

std::vector<bool> GpSpace::Active(const Point& point) const {
  const auto& dimensions = space_->dimensions();
  std::vector<bool> of_dimension(dimensions.size(), true);
  std::vector<bool> active(axes_.size());
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    if (const auto& condition = dimensions[i].condition) {
      const auto parent = axis_of_[condition->parent];  // none: a choice of one option
      of_dimension[i] = of_dimension[condition->parent] &&
                        (!parent || point[*parent] == static_cast<double>(condition->option));
    }
    if (const auto axis = axis_of_[i]) active[static_cast<std::size_t>(*axis)] = of_dimension[i];
  }
  return active;
}

Point GpSpace::Masked(const Point& point) const {
  const std::vector<bool> active = Active(point);
  Point masked = point;
  for (Eigen::Index axis = 0; axis < axes(); ++axis) {
    if (active[static_cast<std::size_t>(axis)]) continue;
    masked[axis] = unordered(axis) ? kInactiveOption : kInactiveNumber;
  }
  return masked;
}

Parameters GpSpace::ParametersAt(const Point& point) const {
  const auto& dimensions = space_->dimensions();
  Parameters parameters;
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    if (!space_->IsActive(i, parameters)) continue;
    const auto axis = axis_of_[i];
    parameters.push_back({dimensions[i].name, axis ? ValueOnAxis(*axis, point[*axis])
                                                   : ValueAt(dimensions[i].distribution, 0)});
  }
  return parameters;
}

}  // namespace espalier::samplers::gp
