#include "tuner/core/estimates/equal_progress.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace espalier {

namespace {

// The unit comes from sums of floating-point gains: what is nearer to a multiple is on it.
constexpr double kRounding = 1e-3;
// A unit that grows by less is the same: or every report would move all curves by nothing.
constexpr double kSameUnit = 1e-6;

double ProgressPerStep(std::span<const IntermediateValue> values) {
  double most = 0;
  IntermediateValue before;  // every trial begins at step 0 with no progress
  for (const IntermediateValue& value : values) {
    const auto steps = static_cast<double>(value.step) - static_cast<double>(before.step);
    const double made = value.progress - before.progress;
    if (steps > 0 && std::isfinite(made)) most = std::max(most, made / steps);
    before = value;
  }
  return most;
}

bool TellsProgress(std::span<const IntermediateValue> values) {
  return std::all_of(values.begin(), values.end(), [](const IntermediateValue& value) {
    return std::isfinite(value.progress) && value.progress > 0;
  });
}

// Linear in progress; an end that is not finite makes all before it so.
IntermediateValue Between(const IntermediateValue& from, const IntermediateValue& to,
                          double progress) {
  const double share = (progress - from.progress) / (to.progress - from.progress);
  IntermediateValue point = to;
  if (share < 1 && std::isfinite(from.value)) {
    point.value = from.value + share * (to.value - from.value);
  }
  point.progress = progress;
  return point;
}

std::int64_t LastMultiple(double progress, double unit) {
  return static_cast<std::int64_t>(std::floor(progress / unit + kRounding));
}

}  // namespace

std::vector<IntermediateValue> AtEqualProgress(std::span<const IntermediateValue> values,
                                               bool ended, double unit) {
  if (unit <= 0 || !TellsProgress(values)) return {values.begin(), values.end()};
  std::vector<IntermediateValue> points;
  const IntermediateValue* before = nullptr;
  for (const IntermediateValue& value : values) {
    if (before != nullptr && value.progress <= before->progress) continue;
    const std::int64_t last = LastMultiple(value.progress, unit);
    const bool exact = value.progress / unit - static_cast<double>(last) <= kRounding;
    const std::int64_t inside = exact ? last - 1 : last;
    // Nothing is known of a curve before its first report.
    const std::int64_t first =
        before == nullptr ? inside + 1 : LastMultiple(before->progress, unit) + 1;
    for (std::int64_t k = first; k <= last; ++k) {
      IntermediateValue point =
          k <= inside ? Between(*before, value, static_cast<double>(k) * unit) : value;
      point.step = k;
      points.push_back(point);
    }
    before = &value;
  }
  if (values.empty()) return points;
  const IntermediateValue& newest = values.back();
  const auto next = static_cast<std::int64_t>(std::ceil(newest.progress / unit - kRounding));
  const bool there = !points.empty() && points.back().step >= next;
  if (!there && (ended || !std::isfinite(newest.value))) {
    points.push_back(newest);
    points.back().step = next;
  }
  return points;
}

void EqualProgress::Take(const Trial& trial) {
  std::size_t& taken = taken_[trial.id];
  if (taken == trial.values.size()) return;
  taken = trial.values.size();
  const double unit = ProgressPerStep(trial.values);
  if (unit > unit_ * (1 + kSameUnit)) unit_ = unit;
}

const EqualProgress::Known& EqualProgress::KnownOf(const Trial& trial, bool ended) {
  Known& known = known_[trial.id];
  if (known.values == trial.values.size() && known.ended == ended && known.unit == unit_) {
    return known;
  }
  known = {.values = trial.values.size(), .ended = ended, .unit = unit_};
  known.points = AtEqualProgress(trial.values, ended, unit_);
  for (const std::vector<IntermediateValue>& curve : *trial.other_curves) {
    known.others.push_back(AtEqualProgress(curve, ended, unit_));
  }
  return known;
}

std::span<const IntermediateValue> EqualProgress::Points(const Trial& trial, bool ended) {
  return KnownOf(trial, ended).points;
}

std::span<const std::vector<IntermediateValue>> EqualProgress::Others(const Trial& trial,
                                                                      bool ended) {
  return KnownOf(trial, ended).others;
}

std::vector<IntermediateValue> EqualProgress::PointsOfFirst(const Trial& trial,
                                                            std::size_t values) const {
  return AtEqualProgress(std::span(trial.values).first(values), /*ended=*/false, unit_);
}

}  // namespace espalier
