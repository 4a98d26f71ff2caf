#include "tuner/web/view/decimation.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/check.h"

namespace espalier::view {

namespace {

// Of the points from `begin` to `end`, which are in one column.
void AppendExtremes(std::span<const double> y, std::size_t begin, std::size_t end,
                    std::vector<std::size_t>& kept) {
  std::optional<std::size_t> first, lowest, highest, last, first_gap, last_gap;
  for (std::size_t i = begin; i < end; ++i) {
    if (!std::isfinite(y[i])) {
      if (!first_gap) first_gap = i;
      last_gap = i;
      continue;
    }
    if (!first) first = lowest = highest = i;
    last = i;
    if (y[i] < y[*lowest]) lowest = i;
    if (y[i] > y[*highest]) highest = i;
  }
  std::vector<std::size_t> own;
  for (const auto& index : {first, lowest, highest, last, first_gap, last_gap}) {
    if (index) own.push_back(*index);
  }
  std::sort(own.begin(), own.end());
  own.erase(std::unique(own.begin(), own.end()), own.end());
  kept.insert(kept.end(), own.begin(), own.end());
}

}  // namespace

PixelColumns::PixelColumns(double from, double to, int width, bool log)
    : from_(from), to_(to), width_(width), log_(log) {
  ESPALIER_CHECK(from <= to && width >= 1 && (!log || from > 0), "columns need an axis");
  scaled_from_ = Scaled(from);
  const double extent = Scaled(to) - scaled_from_;
  per_unit_ = extent > 0 ? width / extent : 0;
}

double PixelColumns::Scaled(double x) const { return log_ ? std::log(x) : x; }

int PixelColumns::Of(double x) const {
  if (x < from_) return -1;
  if (x > to_) return width_;
  const double at = (Scaled(x) - scaled_from_) * per_unit_;
  return std::clamp(static_cast<int>(at), 0, width_ - 1);
}

std::vector<std::size_t> Decimate(std::span<const double> x, std::span<const double> y,
                                  const PixelColumns& columns) {
  ESPALIER_CHECK(x.size() == y.size(), "a point has an x and a y");
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < x.size();) {
    const int column = columns.Of(x[i]);
    const std::size_t begin = i;
    while (i < x.size() && columns.Of(x[i]) == column) ++i;
    if (columns.Has(column)) {
      AppendExtremes(y, begin, i, kept);
    } else {
      kept.push_back(begin);
      if (i - begin > 1) kept.push_back(i - 1);
    }
  }
  return kept;
}

}  // namespace espalier::view
