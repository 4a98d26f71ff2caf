#include "tuner/core/samplers/axis.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "search_spaces/portable_math.h"

namespace espalier::samplers {
bool AreNumbersInOrder(const Choice& choice) {
  std::vector<double> numbers;
  for (const ParameterValue& option : choice.options) {
    const std::optional<double> number = NumberOf(option);
    if (!number) return false;
    numbers.push_back(*number);
  }
  return std::is_sorted(numbers.begin(), numbers.end()) ||
         std::is_sorted(numbers.rbegin(), numbers.rend());
}

Axis::Axis(const Distribution& distribution, bool order_numbers)
    : distribution_(&distribution), count_(Cardinality(distribution).value_or(0)) {
  if (const auto* choice = std::get_if<Choice>(&distribution)) {
    unordered_ = !order_numbers || !AreNumbersInOrder(*choice);
  } else if (const auto* d = std::get_if<QUniform>(&distribution)) {
    steps_ = StepsOf(*d, false);
  } else if (const auto* log = std::get_if<QLogUniform>(&distribution)) {
    steps_ = StepsOf(*log, true);
  }
}

template <typename Rounded>
Axis::Steps Axis::StepsOf(const Rounded& distribution, bool log) const {
  Steps steps{.first = std::floor(distribution.low / distribution.q + 0.5),
              .q = distribution.q,
              .low = distribution.low,
              .high = distribution.high,
              .log = log};
  const double last = steps.first + static_cast<double>(count_ - 1);
  const double begin = (steps.first - 0.5) * steps.q;
  const double end = (last + 0.5) * steps.q;
  // In the logarithm there is nothing at or below 0.
  steps.begin = log ? QuickLog(begin > 0 ? begin : steps.low) : begin;
  steps.width = (log ? QuickLog(end) : end) - steps.begin;
  return steps;
}

double Axis::EdgeBefore(std::uint64_t i) const {
  if (i == 0) return 0;
  if (i == count_) return 1;
  const auto n = static_cast<double>(i);
  if (steps_.q == 0) return n / static_cast<double>(count_);
  const double edge = (steps_.first + n - 0.5) * steps_.q;
  return ((steps_.log ? QuickLog(edge) : edge) - steps_.begin) / steps_.width;
}

double Axis::MiddleOf(std::uint64_t i) const {
  const auto n = static_cast<double>(i);
  if (steps_.q == 0) return (n + 0.5) / static_cast<double>(count_);
  const double value = std::clamp((steps_.first + n) * steps_.q, steps_.low, steps_.high);
  return ((steps_.log ? QuickLog(value) : value) - steps_.begin) / steps_.width;
}

UnitCell Axis::cell(std::uint64_t i) const { return {EdgeBefore(i), EdgeBefore(i + 1)}; }

Coordinate Axis::Place(const ParameterValue& value) const {
  if (continuous()) return {ToUnit(*distribution_, value).Middle(), 0};
  const std::uint64_t cell = *IndexOf(*distribution_, value);
  return {unordered_ ? 0 : MiddleOf(cell), cell};
}

Coordinate Axis::PlaceAt(double u) const {
  if (continuous()) return {u, 0};
  double at = u * static_cast<double>(count_);
  if (steps_.q > 0) {
    const double x = steps_.begin + u * steps_.width;
    at = std::nearbyint((steps_.log ? QuickExp(x) : x) / steps_.q) - steps_.first;
  }
  // Beyond 2^53 values some of those between are never met.
  std::uint64_t cell = 0;
  if (at >= static_cast<double>(count_)) {
    cell = count_ - 1;
  } else if (at > 0) {
    cell = static_cast<std::uint64_t>(at);
  }
  return {MiddleOf(cell), cell};
}

ParameterValue Axis::ValueOf(const Coordinate& coordinate) const {
  if (continuous()) return FromUnit(*distribution_, coordinate.at);
  return ValueAt(*distribution_, coordinate.cell);
}

}  // namespace espalier::samplers
