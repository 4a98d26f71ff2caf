#include "tuner/core/samplers/gp/boxes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "tuner/core/fronts/fronts.h"

namespace espalier::samplers::gp {
namespace {

constexpr double kEndless = std::numeric_limits<double>::infinity();
constexpr double kLeastWidth = 1e-12;
constexpr std::size_t kMostBoxes = 1000;
constexpr double kLeastShareBeyond = 0.1;

using Vector = std::vector<double>;  // by objective

// A corner of what a set of points leaves undominated, where smaller is better: a local upper bound
// with, for each objective, the point that defines it there (Klamroth, Lacour and Vanderpooten
// 2015).
struct UpperBound {
  Vector corner;
  std::vector<Vector> defined_by;
};

bool StrictlyBelow(const Vector& a, const Vector& b) {
  for (std::size_t j = 0; j < a.size(); ++j) {
    if (a[j] >= b[j]) return false;
  }
  return true;
}

// Algorithm 2 of Lacour et al.: the points ascend by their first objective.
std::vector<UpperBound> UpperBounds(const std::vector<Vector>& points, const Vector& reference) {
  const std::size_t objectives = reference.size();
  UpperBound all{reference, std::vector<Vector>(objectives, Vector(objectives, -kEndless))};
  for (std::size_t j = 0; j < objectives; ++j) all.defined_by[j][j] = reference[j];
  std::vector<UpperBound> bounds = {all};
  for (const Vector& point : points) {
    std::vector<UpperBound> next;
    for (UpperBound& bound : bounds) {
      if (!StrictlyBelow(point, bound.corner)) {
        next.push_back(std::move(bound));
        continue;
      }
      for (std::size_t j = 0; j < objectives; ++j) {
        double most = -kEndless;
        for (std::size_t k = 0; k < objectives; ++k) {
          if (k != j) most = std::max(most, bound.defined_by[k][j]);
        }
        if (j > 0 && point[j] < most) continue;
        UpperBound child = bound;
        child.corner[j] = point[j];
        child.defined_by[j] = point;
        next.push_back(std::move(child));
      }
    }
    bounds = std::move(next);
  }
  return bounds;
}

std::vector<Vector> LossesOf(const Eigen::MatrixXd& points) {
  std::vector<Vector> losses;
  for (Eigen::Index i = 0; i < points.rows(); ++i) {
    const Eigen::RowVectorXd loss = -points.row(i);
    losses.emplace_back(loss.begin(), loss.end());
  }
  return losses;
}

// Those that none dominates, each once, ascending.
std::vector<Vector> FrontOf(std::vector<Vector> points) {
  std::sort(points.begin(), points.end());
  points.erase(std::unique(points.begin(), points.end()), points.end());
  std::vector<Vector> front;
  for (const Vector& point : points) {  // what dominates it came before it
    const bool dominated = std::any_of(
        front.begin(), front.end(), [&](const Vector& other) { return Dominates(other, point); });
    if (!dominated) front.push_back(point);
  }
  return front;
}

std::vector<UpperBound> NonDominatedCorners(std::vector<Vector> front, const Vector& reference) {
  for (;;) {
    std::vector<UpperBound> corners = UpperBounds(front, reference);
    if (corners.size() <= kMostBoxes || front.size() < 2) return corners;
    std::vector<Vector> half;
    for (std::size_t i = 0; i < front.size(); i += 2) half.push_back(front[i]);
    front = std::move(half);
  }
}

// Into how many parts a front of so many points, evenly spread, divides each side of a simplex: n
// parts take (n + objectives - 1 over n) points.
double PartsOf(std::size_t points, Eigen::Index objectives) {
  double parts = 0;
  const auto made = [&] {
    double count = 1;
    for (Eigen::Index i = 1; i < objectives; ++i) count *= 1 + parts / static_cast<double>(i);
    return count;
  };
  while (made() <= static_cast<double>(points)) ++parts;
  return parts - 1;
}

}  // namespace

Eigen::RowVectorXd ReferencePoint(const Eigen::MatrixXd& points) {
  Eigen::RowVectorXd reference(points.cols());
  for (Eigen::Index j = 0; j < points.cols(); ++j) {
    const double worst = -points.col(j).minCoeff();
    reference[j] = -std::nextafter(std::max(1.1 * worst, 0.9 * worst), kEndless);
  }
  return reference;
}

Eigen::RowVectorXd ReferenceBeyondFront(const Eigen::MatrixXd& points) {
  const std::vector<Vector> front = FrontOf(LossesOf(points));
  const double parts = PartsOf(front.size(), points.cols());
  const double share = std::max(kLeastShareBeyond, 1 / parts);  // infinite: of one point
  Eigen::RowVectorXd reference = ReferencePoint(points);
  for (Eigen::Index j = 0; j < points.cols(); ++j) {
    double best = kEndless;
    double worst = -kEndless;
    for (const Vector& point : front) {
      best = std::min(best, point[static_cast<std::size_t>(j)]);
      worst = std::max(worst, point[static_cast<std::size_t>(j)]);
    }
    const double beyond = worst + share * std::max(worst - best, 1.0);
    reference[j] = std::max(reference[j], -beyond);
  }
  return reference;
}

Boxes NonDominatedBoxes(const Eigen::MatrixXd& points, const Eigen::RowVectorXd& reference) {
  const auto objectives = static_cast<std::size_t>(points.cols());
  const Vector limit = LossesOf(reference).front();
  std::vector<Vector> losses = LossesOf(points);
  std::erase_if(losses, [&](const Vector& point) { return !StrictlyBelow(point, limit); });
  // What is not dominated lies below a corner. Seen from there, where signs are turned, it is what
  // the corners dominate, and that has boxes: eq. 2 of Lacour et al.
  std::vector<Vector> corners;
  for (const UpperBound& bound : NonDominatedCorners(FrontOf(std::move(losses)), limit)) {
    Vector corner = bound.corner;
    for (double& x : corner) x = -x;
    corners.push_back(std::move(corner));
  }
  const auto bounds = UpperBounds(FrontOf(std::move(corners)), Vector(objectives, kEndless));
  std::vector<std::pair<Vector, Vector>> boxes;
  for (const UpperBound& bound : bounds) {
    Vector low(objectives);
    Vector high = bound.corner;
    low[0] = bound.defined_by[0][0];
    high[0] = kEndless;
    for (std::size_t j = 1; j < objectives; ++j) {
      low[j] = -kEndless;
      for (std::size_t k = 0; k < j; ++k) low[j] = std::max(low[j], bound.defined_by[k][j]);
    }
    if (StrictlyBelow(low, high)) boxes.emplace_back(std::move(low), std::move(high));
  }
  const auto count = static_cast<Eigen::Index>(boxes.size());
  Boxes made{Eigen::MatrixXd(count, points.cols()), Eigen::MatrixXd(count, points.cols())};
  for (Eigen::Index i = 0; i < count; ++i) {
    const auto& [low, high] = boxes[static_cast<std::size_t>(i)];
    for (std::size_t j = 0; j < objectives; ++j) {
      made.low(i, static_cast<Eigen::Index>(j)) = low[j];
      made.width(i, static_cast<Eigen::Index>(j)) = std::max(high[j] - low[j], kLeastWidth);
    }
  }
  return made;
}

}  // namespace espalier::samplers::gp
