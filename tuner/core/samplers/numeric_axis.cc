#include "tuner/core/samplers/numeric_axis.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "search_spaces/overloaded.h"
#include "search_spaces/portable_math.h"
#include "search_spaces/unit_interval.h"

namespace espalier::samplers {
namespace {

constexpr double kSpread = 4;  // standard deviations on each side of a bell
constexpr double kLargest = std::numeric_limits<double>::max();

double LogOf(double x) {
  return QuickLog(std::clamp(x, std::numeric_limits<double>::min(), kLargest));
}

}  // namespace

void NumericAxis::SetRange(Scale scale, double low, double high) {
  scale_ = scale;
  low_ = low;
  high_ = high;
}

void NumericAxis::SetSteps(double first, double count, double q) {
  scale_ = Scale::kSteps;
  first_ = first;
  count_ = count;
  q_ = q;
}

// The multiples of q between low and high, each with its half steps.
void NumericAxis::SetLogCells(double q, double low, double high) {
  q_ = q;
  if (steps_ == Steps::kPoints) return SetRange(Scale::kLog, LogOf(low), LogOf(high));
  const double first = std::floor(low / q + 0.5);
  const double last = std::max(first, std::ceil(high / q - 0.5));
  SetRange(Scale::kLog, LogOf(first > 0 ? (first - 0.5) * q : low), LogOf((last + 0.5) * q));
}

std::optional<NumericAxis> NumericAxis::Of(const Distribution& distribution, Steps steps) {
  NumericAxis axis(distribution, steps);
  const auto bounded = [&axis](const auto& d) {
    axis.least_ = d.low;
    axis.most_ = d.high;
  };
  const auto whole = [&axis](const Distribution& d, double first, double q) {
    axis.SetSteps(first, static_cast<double>(*Cardinality(d)), q);
  };
  std::visit(
      Overloaded{
          [](const Choice&) {},
          [&](const RandInt& d) { whole(distribution, static_cast<double>(d.low), 1); },
          [&](const Uniform& d) {
            bounded(d);
            axis.SetRange(Scale::kLinear, d.low, d.high);
          },
          [&](const QUniform& d) { whole(distribution, std::floor(d.low / d.q + 0.5), d.q); },
          [&](const LogUniform& d) {
            bounded(d);
            axis.SetRange(Scale::kLog, LogOf(d.low), LogOf(d.high));
          },
          [&](const QLogUniform& d) {
            bounded(d);
            axis.SetLogCells(d.q, d.low, d.high);
          },
          [&](const Normal& d) {
            axis.least_ = -kLargest;
            axis.most_ = kLargest;
            axis.SetRange(Scale::kLinear, d.mu - kSpread * d.sigma, d.mu + kSpread * d.sigma);
          },
          [&](const QNormal& d) {
            const double first = std::nearbyint((d.mu - kSpread * d.sigma) / d.q);
            const double last = std::nearbyint((d.mu + kSpread * d.sigma) / d.q);
            axis.SetSteps(first, last - first + 1, d.q);
          },
          [&](const LogNormal& d) {
            axis.most_ = kLargest;
            axis.SetRange(Scale::kLog, d.mu - kSpread * d.sigma, d.mu + kSpread * d.sigma);
          },
          [&](const QLogNormal& d) {
            axis.most_ = kLargest;
            axis.q_ = d.q;
            axis.SetRange(Scale::kLog, d.mu - kSpread * d.sigma, d.mu + kSpread * d.sigma);
          }},
      distribution);
  const std::optional<std::uint64_t> count = Cardinality(distribution);
  const bool single = (count && *count == 1) || (axis.scale_ == Scale::kSteps && axis.count_ < 2);
  if (std::holds_alternative<Choice>(distribution) || single || !(axis.high_ > axis.low_)) {
    return std::nullopt;
  }
  return axis;
}

double NumericAxis::Place(const ParameterValue& value) const {
  const double x = *NumberOf(value);
  if (scale_ == Scale::kSteps) {
    double index = std::nearbyint(x / q_) - first_;
    // A tie at a bound counts for the inner multiple.
    if (!std::holds_alternative<QNormal>(*distribution_))
      index = std::clamp(index, 0.0, count_ - 1);
    return steps_ == Steps::kCells ? (index + 0.5) / count_ : index / (count_ - 1);
  }
  // What was rounded to 0 lies half a step further down than the first multiple.
  const double at = scale_ == Scale::kLog ? LogOf(std::max(x, q_ / 4)) : x;
  return (at - low_) / (high_ - low_);
}

double NumericAxis::IndexAt(double place) const {
  // A tie of points goes to the lower one, as in CMA-ES with margin.
  const double index =
      steps_ == Steps::kCells ? std::floor(place * count_) : std::ceil(place * (count_ - 1) - 0.5);
  return std::clamp(index, 0.0, count_ - 1);
}

ParameterValue NumericAxis::ValueOf(double index) const {
  if (std::holds_alternative<QNormal>(*distribution_)) return (first_ + index) * q_ + 0.0;
  const std::uint64_t last = *Cardinality(*distribution_) - 1;
  // The largest count is no exact double.
  const bool past = index >= static_cast<double>(last);
  return espalier::ValueAt(*distribution_, past ? last : static_cast<std::uint64_t>(index));
}

ParameterValue NumericAxis::ValueAt(double place) const {
  if (scale_ == Scale::kSteps) return ValueOf(IndexAt(place));
  double x = low_ + place * (high_ - low_);
  if (scale_ == Scale::kLog) x = std::min(PortableExp(x), kLargest);
  if (q_ > 0) x = std::min(RoundToMultiple(x, q_), kLargest);
  return std::clamp(x, least_, most_);
}

}  // namespace espalier::samplers
