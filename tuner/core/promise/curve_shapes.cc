#include "tuner/core/promise/curve_shapes.h"

#include <algorithm>
#include <cmath>

namespace espalier {

namespace {

constexpr double kMostRows = 128;

struct Shape {
  double time;  // in steps
  double power;
  bool exponential;

  double operator()(double step) const {
    return exponential ? std::exp(-std::pow(step / time, power))
                       : std::pow(1 + step / time, -power);
  }
};

std::vector<Shape> Family(double last_step) {
  std::vector<Shape> family;
  for (double speed = 256; speed > 2; speed /= 2) {
    for (const double power : {0.5, 1.0, 1.6}) family.push_back({last_step / speed, power, false});
  }
  for (double speed = 64; speed > 1; speed /= 2.5) {
    for (const double power : {0.6, 1.0}) family.push_back({last_step / speed, power, true});
  }
  return family;
}

}  // namespace

CurveShapes::CurveShapes(double first_step, double last_step)
    : first_(first_step), length_(last_step - first_step) {
  const std::vector<Shape> family = Family(last_step);
  size_ = family.size();
  whole_ = length_ < kMostRows && first_ == std::floor(first_);
  const double intervals = whole_ ? std::ceil(length_) : kMostRows - 1;
  rows_ = static_cast<std::size_t>(intervals) + 1;
  for (std::size_t row = 0; row < rows_; ++row) {
    const double share = static_cast<double>(row) / intervals;
    const double step = first_ + (whole_ ? static_cast<double>(row) : length_ * share * share);
    for (const Shape& shape : family) {
      const double at_first = shape(first_);
      const double at_last = shape(last_step);
      table_.push_back((shape(step) - at_last) / (at_first - at_last));
    }
  }
  at_.resize(size_);
}

std::span<const double> CurveShapes::At(double step) {
  const double past = std::clamp(step - first_, 0.0, length_);
  const double place = whole_ ? past : std::sqrt(past / length_) * static_cast<double>(rows_ - 1);
  const auto row = std::min(static_cast<std::size_t>(place), rows_ - 2);
  double share = place - static_cast<double>(row);
  if (!whole_) {
    // Linear in the step, not in its root.
    const auto low = static_cast<double>(row);
    share = (place * place - low * low) / (2 * low + 1);
  }
  const double* from = &table_[row * size_];
  for (std::size_t k = 0; k < size_; ++k) {
    at_[k] = from[k] + share * (from[k + size_] - from[k]);
  }
  return at_;
}

}  // namespace espalier
