#include "tuner/web/view/decimation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"

namespace espalier::view {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct Line {
  std::vector<double> x, y;

  Line Only(const std::vector<std::size_t>& kept) const {
    Line line;
    for (const std::size_t i : kept) {
      line.x.push_back(x[i]);
      line.y.push_back(y[i]);
    }
    return line;
  }
};

// The range of y that the line paints in each column: from its points there, and where it passes
// from one column to another, at every column's edge between the two.
std::map<int, std::pair<double, double>> Painted(const Line& line, const PixelColumns& columns,
                                                 const std::vector<double>& edges) {
  std::map<int, std::pair<double, double>> painted;
  const auto paint = [&](int column, double y) {
    if (!columns.Has(column)) return;
    const auto [at, added] = painted.try_emplace(column, y, y);
    if (added) return;
    at->second.first = std::min(at->second.first, y);
    at->second.second = std::max(at->second.second, y);
  };
  for (std::size_t i = 0; i < line.x.size(); ++i) {
    paint(columns.Of(line.x[i]), line.y[i]);
    if (i == 0) continue;
    const double x0 = line.x[i - 1];
    const double x1 = line.x[i];
    for (std::size_t edge = 0; edge < edges.size(); ++edge) {
      if (!(x0 < edges[edge] && edges[edge] <= x1)) continue;
      const double y = line.y[i - 1] + (line.y[i] - line.y[i - 1]) * (edges[edge] - x0) / (x1 - x0);
      paint(static_cast<int>(edge) - 1, y);
      paint(static_cast<int>(edge), y);
    }
  }
  return painted;
}

std::vector<double> EdgesOf(double from, double to, int width, bool log) {
  std::vector<double> edges;
  for (int i = 0; i <= width; ++i) {
    const double part = static_cast<double>(i) / width;
    edges.push_back(log ? from * std::pow(to / from, part) : from + (to - from) * part);
  }
  return edges;
}

Line RandomWalk(Random& random, std::size_t points) {
  Line line;
  double x = 0;
  double y = 0;
  for (std::size_t i = 0; i < points; ++i) {
    x += random.Uniform() * random.Uniform();
    y += random.Uniform() - 0.5 + (random.Below(50) == 0 ? 100 * random.Uniform() : 0);
    line.x.push_back(x);
    line.y.push_back(y);
  }
  return line;
}

TEST(Decimation, PaintsTheSameColumnsAsTheWholeCurve) {
  Random random(7);
  for (int round = 0; round < 60; ++round) {
    const Line whole = RandomWalk(random, 1 + random.Below(3000));
    const int width = 1 + static_cast<int>(random.Below(60));
    const bool log = round % 2 == 1;
    // Also of a window within the curve.
    const double from = std::max(1e-3, whole.x.back() * 0.3 * random.Uniform());
    const double to = from + (whole.x.back() - from) * (0.2 + 0.8 * random.Uniform());
    if (!(from < to)) continue;
    const PixelColumns columns(from, to, width, log);
    const Line kept = whole.Only(Decimate(whole.x, whole.y, columns));
    SCOPED_TRACE(absl::StrCat("round ", round, ", ", whole.x.size(), " points, width ", width));
    EXPECT_LE(kept.x.size(), static_cast<std::size_t>(4 * width + 4));
    const std::vector<double> edges = EdgesOf(from, to, width, log);
    const auto wanted = Painted(whole, columns, edges);
    const auto painted = Painted(kept, columns, edges);
    ASSERT_EQ(painted.size(), wanted.size());
    for (const auto& [column, range] : wanted) {
      EXPECT_NEAR(painted.at(column).first, range.first, 1e-6) << column;
      EXPECT_NEAR(painted.at(column).second, range.second, 1e-6) << column;
    }
  }
}

TEST(Decimation, NeverLosesASpikeOrTheOrder) {
  Line line;
  for (int i = 0; i < 10'000; ++i) {
    line.x.push_back(i);
    line.y.push_back(i == 4321 ? 1e6 : 1);
  }
  const auto kept = Decimate(line.x, line.y, PixelColumns(0, 9999, 10, false));
  EXPECT_EQ(std::count(kept.begin(), kept.end(), 4321U), 1);
  EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end()));
  EXPECT_EQ(kept.front(), 0U);
  EXPECT_EQ(kept.back(), 9999U);
  EXPECT_LE(kept.size(), 40U);
}

TEST(Decimation, APointAtTheEndChangesOnlyItsOwnColumn) {
  Random random(3);
  Line line = RandomWalk(random, 1000);
  const PixelColumns columns(0, line.x.back() * 2, 40, false);
  const auto before = Decimate(line.x, line.y, columns);
  line.x.push_back(line.x.back() + 0.01);
  line.y.push_back(-1e3);
  const auto after = Decimate(line.x, line.y, columns);
  const int last = columns.Of(line.x.back());
  const auto elsewhere = [&](std::size_t i) { return columns.Of(line.x[i]) != last; };
  std::vector<std::size_t> then, now;
  std::copy_if(before.begin(), before.end(), std::back_inserter(then), elsewhere);
  std::copy_if(after.begin(), after.end(), std::back_inserter(now), elsewhere);
  EXPECT_EQ(then, now);
}

TEST(Decimation, GapsStay) {
  const std::vector<double> x = {1, 2, 3, 4, 5, 6, 7, 8};
  const std::vector<double> y = {5, 1, kNaN, 9, kNaN, HUGE_VAL, 3, 4};
  const auto kept = Decimate(x, y, PixelColumns(1, 8, 1, false));
  EXPECT_EQ(kept, (std::vector<std::size_t>{0, 1, 2, 3, 5, 7}));
  const auto none = Decimate(std::vector<double>{1, 2}, std::vector<double>{kNaN, kNaN},
                             PixelColumns(1, 2, 5, false));
  EXPECT_EQ(none, (std::vector<std::size_t>{0, 1}));
}

TEST(Decimation, ColumnsAreEqualInTheAxisOwnScale) {
  const PixelColumns columns(1, 10'000, 4, true);
  EXPECT_EQ(columns.Of(2), 0);
  EXPECT_EQ(columns.Of(20), 1);
  EXPECT_EQ(columns.Of(200), 2);
  EXPECT_EQ(columns.Of(10'000), 3);
  EXPECT_EQ(columns.Of(0.5), -1);
  EXPECT_EQ(columns.Of(20'000), 4);
  EXPECT_EQ(PixelColumns(3, 3, 7, false).Of(3), 0) << "an axis of one point";
}

}  // namespace
}  // namespace espalier::view
