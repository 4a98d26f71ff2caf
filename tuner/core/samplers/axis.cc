#include "tuner/core/samplers/axis.h"

#include <algorithm>
#include <cmath>

namespace espalier::samplers {
namespace {

// Past this many values a discrete axis is as good as continuous, and its cells cost time.
constexpr std::uint64_t kMostCells = 256;

bool IsOrdered(const Choice& choice) {
  std::vector<double> numbers;
  for (const ParameterValue& option : choice.options) {
    if (const auto* i = std::get_if<std::int64_t>(&option)) {
      numbers.push_back(static_cast<double>(*i));
    } else if (const auto* d = std::get_if<double>(&option)) {
      numbers.push_back(*d);
    } else {
      return false;
    }
  }
  return std::is_sorted(numbers.begin(), numbers.end()) ||
         std::is_sorted(numbers.rbegin(), numbers.rend());
}

}  // namespace

Axis::Axis(const Distribution& distribution) : distribution_(&distribution) {
  const auto* choice = std::get_if<Choice>(&distribution);
  if (choice != nullptr && !IsOrdered(*choice)) {
    unordered_ = true;
    options_ = choice->options.size();
    return;
  }
  const std::uint64_t count = Cardinality(distribution).value_or(0);
  if (choice != nullptr) {
    const auto n = static_cast<double>(count);
    for (std::uint64_t i = 0; i < count; ++i) {
      cells_.push_back({static_cast<double>(i) / n, static_cast<double>(i + 1) / n});
    }
  } else if (count <= kMostCells) {
    for (std::uint64_t i = 0; i < count; ++i) {
      cells_.push_back(ToUnit(distribution, ValueAt(distribution, i)));
    }
  }
}

Coordinate Axis::Place(const ParameterValue& value) const {
  if (continuous()) return {ToUnit(*distribution_, value).Middle(), 0};
  const auto cell = static_cast<std::size_t>(*IndexOf(*distribution_, value));
  return {unordered_ ? 0 : cells_[cell].Middle(), cell};
}

Coordinate Axis::PlaceAt(double u) const {
  if (continuous()) return {u, 0};
  const auto after = std::upper_bound(cells_.begin(), cells_.end() - 1, u,
                                      [](double x, const UnitCell& cell) { return x < cell.high; });
  return {after->Middle(), static_cast<std::size_t>(after - cells_.begin())};
}

ParameterValue Axis::ValueOf(const Coordinate& coordinate) const {
  if (continuous()) return FromUnit(*distribution_, coordinate.at);
  return ValueAt(*distribution_, coordinate.cell);
}

}  // namespace espalier::samplers
