#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "base/random.h"
#include "tuner/core/samplers/gp/boxes.h"

namespace espalier::samplers::gp {
namespace {

// What of the unit cube above 0 at least one of the points dominates, on a grid.
double VolumeBelow(const Eigen::MatrixXd& points, int cells) {
  const auto objectives = static_cast<int>(points.cols());
  int count = 0;
  const int all = static_cast<int>(std::pow(cells, objectives));
  for (int i = 0; i < all; ++i) {
    Eigen::RowVectorXd at(objectives);
    for (int k = 0, rest = i; k < objectives; ++k, rest /= cells)
      at[k] = (rest % cells + 0.5) / cells;
    for (Eigen::Index p = 0; p < points.rows(); ++p) {
      if ((points.row(p).array() > at.array()).all()) {
        ++count;
        break;
      }
    }
  }
  return static_cast<double>(count) / all;
}

TEST(GpBoxes, TellTheVolumeThatAPointAdds) {
  Random random(5);
  for (const int objectives : {2, 3, 4}) {
    const int cells = objectives == 4 ? 10 : 20;
    // On the grid's lines, so that it is exact; with points that others dominate, and one twice.
    const auto draw = [&] {
      return static_cast<double>(random.Below(std::uint64_t(cells) + 1)) / cells;
    };
    Eigen::MatrixXd points(9, objectives);
    for (double& x : points.reshaped()) x = draw();
    points.row(8) = points.row(0);
    const Boxes boxes = NonDominatedBoxes(points, Eigen::RowVectorXd::Zero(objectives));
    for (int i = 0; i < 30; ++i) {
      Eigen::MatrixXd with(10, objectives);
      with.topRows(9) = points;
      for (int k = 0; k < objectives; ++k) with(9, k) = draw();
      double added = 0;
      for (Eigen::Index b = 0; b < boxes.low.rows(); ++b) {
        added += (with.row(9) - boxes.low.row(b)).cwiseMax(0.0).cwiseMin(boxes.width.row(b)).prod();
      }
      EXPECT_NEAR(added, VolumeBelow(with, cells) - VolumeBelow(points, cells), 1e-9) << objectives;
    }
  }
}

// So many points on the line or plane where values sum to -4, evenly, and one that all dominate.
Eigen::MatrixXd EvenFront(int parts, int objectives) {
  std::vector<Eigen::RowVectorXd> rows = {Eigen::RowVectorXd::Constant(objectives, -10)};
  for (int i = 0; i <= parts; ++i) {
    for (int j = 0; j <= (objectives == 3 ? parts - i : 0); ++j) {
      Eigen::RowVectorXd row(objectives);
      row[0] = -i, row[objectives - 1] = i + j - parts;
      if (objectives == 3) row[1] = -j;
      rows.push_back(4 * row / parts);
    }
  }
  Eigen::MatrixXd points(static_cast<Eigen::Index>(rows.size()), objectives);
  for (std::size_t i = 0; i < rows.size(); ++i) points.row(static_cast<Eigen::Index>(i)) = rows[i];
  return points;
}

TEST(GpBoxes, BeginBeyondAllPointsOrBeyondTheFront) {
  for (const int objectives : {2, 3}) {
    for (const auto& [parts, beyond] : {std::pair(1, 8.0), {2, 6.0}, {4, 5.0}, {30, 4.4}}) {
      const Eigen::MatrixXd points = EvenFront(parts, objectives);
      for (const double at : ReferencePoint(points)) EXPECT_NEAR(at, -11, 1e-9);
      for (const double at : ReferenceBeyondFront(points)) EXPECT_NEAR(at, -beyond, 1e-9);
      // A front of next to no extent is no reason to look nowhere else.
      for (const double at : ReferenceBeyondFront(points / 1000)) {
        EXPECT_NEAR(at, -0.011, 1e-9) << "not beyond all points";
      }
    }
    const Eigen::MatrixXd one = EvenFront(1, objectives).topRows(2);
    EXPECT_EQ(ReferenceBeyondFront(one), ReferencePoint(one));
  }
  const Eigen::MatrixXd narrow{{0, -0.1}, {-0.1, 0}, {-10, -10}};
  for (const double at : ReferenceBeyondFront(narrow)) EXPECT_NEAR(at, -1.1, 1e-9);
}

}  // namespace
}  // namespace espalier::samplers::gp
