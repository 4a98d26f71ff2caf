#include "tuner/web/view/lane_columns.h"

#include <algorithm>

#include "base/check.h"

namespace espalier::view {

TimeColumns::TimeColumns(Time from, Time to, int columns)
    : from_(from), to_(to), columns_(columns) {
  ESPALIER_CHECK(from < to && columns >= 1, "columns need a stretch of time");
}

double TimeColumns::column_s() const {
  return SecondsBetween(from_, to_) / static_cast<double>(columns_);
}

int TimeColumns::Of(Time at) const {
  const double column = SecondsBetween(from_, at) / column_s();
  return static_cast<int>(std::clamp(column, 0.0, static_cast<double>(columns_ - 1)));
}

Time TimeColumns::Begin(int column) const {
  return column >= columns_ ? to_ : After(from_, column_s() * column);
}

void LaneSpans::Add(const Lane& span, Time now) {
  const Time end = span.to == Time{} ? now : span.to;
  if (!columns_.Touches(span.from, end)) return;
  // One that goes on is seen whole, however short it is yet.
  if (span.to == Time{} || SecondsBetween(span.from, end) >= columns_.column_s()) {
    long_ones_.push_back(span);
    return;
  }
  const auto [at, added] = short_ones_.try_emplace({span.slot, columns_.Of(span.from)}, span);
  if (added) return;
  Lane& merged = at->second;
  merged.from = std::min(merged.from, span.from);
  merged.to = std::max(merged.to, span.to);
  merged.count += span.count;
}

std::vector<LaneSpans::Lane> LaneSpans::Sorted() const {
  std::vector<Lane> all = long_ones_;
  for (const auto& [place, span] : short_ones_) all.push_back(span);
  std::sort(all.begin(), all.end(), [](const Lane& a, const Lane& b) {
    return std::tie(a.slot, a.from) < std::tie(b.slot, b.from);
  });
  return all;
}

SlotUse::SlotUse(const TimeColumns& columns)
    : columns_(columns),
      part_s_(static_cast<std::size_t>(columns.columns())),
      change_(static_cast<std::size_t>(columns.columns()) + 1) {}

void SlotUse::Add(Time from, Time to) {
  from = std::max(from, columns_.from());
  to = std::min(to, columns_.to());
  if (from >= to) return;
  const auto first = static_cast<std::size_t>(columns_.Of(from));
  const auto last = static_cast<std::size_t>(columns_.Of(to));
  if (first == last) {
    part_s_[first] += SecondsBetween(from, to);
    return;
  }
  part_s_[first] += SecondsBetween(from, columns_.Begin(static_cast<int>(first) + 1));
  part_s_[last] += SecondsBetween(columns_.Begin(static_cast<int>(last)), to);
  ++change_[first + 1];
  --change_[last];
}

std::vector<double> SlotUse::Mean() const {
  std::vector<double> mean;
  std::int64_t whole = 0;
  for (std::size_t i = 0; i < part_s_.size(); ++i) {
    whole += change_[i];
    mean.push_back(static_cast<double>(whole) + part_s_[i] / columns_.column_s());
  }
  return mean;
}

}  // namespace espalier::view
