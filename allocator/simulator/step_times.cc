#include "allocator/simulator/step_times.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace espalier {

namespace {

constexpr int kMostNodes = 16;
constexpr double kFlat = 1e-12;     // a cell of less volume, relative to its box, is none
constexpr double kOutside = -1e-9;  // a weight below this is outside; above, rounding

// The same ring may be read from any of its nodes on.
std::string SmallestRotation(const std::vector<int>& ring) {
  std::vector<int> smallest = ring;
  std::vector<int> turned = ring;
  for (std::size_t i = 1; i < ring.size(); ++i) {
    std::rotate(turned.begin(), turned.begin() + 1, turned.end());
    smallest = std::min(smallest, turned);
  }
  return absl::StrJoin(smallest, "");
}

// A sum that does not lose the small terms (Kahan 1965).
class CompensatedSum {
 public:
  void Add(double x) {
    const double y = x - lost_;
    const double t = sum_ + y;
    lost_ = t - sum_ - y;
    sum_ = t;
  }
  double sum() const { return sum_; }

 private:
  double sum_ = 0;
  double lost_ = 0;
};

struct MeanTime {
  CompensatedSum step, sync;
  int count = 0;
};

}  // namespace

std::vector<StepTimes::Point> StepTimes::Corners(const std::vector<RingMeasurement>& rings,
                                                 const std::vector<ScaleMeasurement>& scales) {
  std::map<std::tuple<int, int, std::int64_t>, MeanTime> means;
  for (const RingMeasurement& m : rings) {
    int replicas = 0;
    for (const char digit : m.ring) replicas += digit - '0';
    MeanTime& mean = means[{static_cast<int>(m.ring.size()), replicas, m.atomic_batch}];
    mean.step.Add(m.time.step_s);
    mean.sync.Add(m.time.sync_s);
    ++mean.count;
  }
  std::vector<Point> corners;
  const auto add = [&](int nodes, int replicas, std::int64_t batch, StepTime time) {
    corners.push_back(
        {{static_cast<double>(nodes), static_cast<double>(replicas), static_cast<double>(batch)},
         time});
  };
  for (const auto& [key, mean] : means) {
    const auto& [nodes, replicas, batch] = key;
    add(nodes, replicas, batch, {mean.step.sum() / mean.count, mean.sync.sum() / mean.count});
  }
  for (const ScaleMeasurement& m : scales) add(m.nodes, m.replicas, m.atomic_batch, m.time);
  return corners;
}

bool StepTimes::MakeCell(const std::array<const Point*, 4>& corners, Cell& cell) {
  cell.last = corners[3]->at;
  for (std::size_t i = 0; i < 4; ++i) cell.times[i] = corners[i]->time;
  std::array<std::array<double, 3>, 3> edges;  // [axis][corner]
  double box = 1;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    double widest = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      edges[axis][i] = corners[i]->at[axis] - cell.last[axis];
      widest = std::max(widest, std::abs(edges[axis][i]));
    }
    box *= widest;
  }
  // The inverse by cofactors.
  const auto cofactor = [&](std::size_t row, std::size_t column) {
    const std::size_t r1 = (row + 1) % 3, r2 = (row + 2) % 3;
    const std::size_t c1 = (column + 1) % 3, c2 = (column + 2) % 3;
    return edges[r1][c1] * edges[r2][c2] - edges[r1][c2] * edges[r2][c1];
  };
  double volume = 0;
  for (std::size_t i = 0; i < 3; ++i) volume += edges[0][i] * cofactor(0, i);
  if (std::abs(volume) <= kFlat * box) return false;
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t column = 0; column < 3; ++column) {
      cell.inverse[row][column] = cofactor(column, row) / volume;
    }
  }
  return true;
}

absl::StatusOr<StepTimes> StepTimes::Make(const std::vector<RingMeasurement>& rings,
                                          const std::vector<ScaleMeasurement>& scales,
                                          const std::vector<Tetrahedron>& tetrahedra) {
  if (rings.empty()) return absl::InvalidArgumentError("no step was measured on any ring");
  StepTimes times;
  times.min_atomic_batch_ = times.max_atomic_batch_ = rings.front().atomic_batch;
  std::map<std::string, std::map<std::int64_t, StepTime>> sorted;
  for (const RingMeasurement& m : rings) {
    times.min_atomic_batch_ = std::min(times.min_atomic_batch_, m.atomic_batch);
    times.max_atomic_batch_ = std::max(times.max_atomic_batch_, m.atomic_batch);
    sorted[m.ring][m.atomic_batch] = m.time;
  }
  for (const auto& [ring, measured] : sorted) {
    Curve& curve = times.curves_[ring];
    for (const auto& [batch, time] : measured) {
      curve.batches.push_back(static_cast<double>(batch));
      curve.times.push_back(time);
    }
  }
  const std::vector<Point> corners = Corners(rings, scales);
  for (const Tetrahedron& tetrahedron : tetrahedra) {
    std::array<const Point*, 4> points{};
    for (std::size_t i = 0; i < 4; ++i) {
      const int corner = tetrahedron[i];
      if (corner < 0 || static_cast<std::size_t>(corner) >= corners.size()) {
        return absl::InvalidArgumentError(absl::StrCat("a tetrahedron names corner ", corner,
                                                       "; there are 0 to ", corners.size() - 1));
      }
      points[i] = &corners[static_cast<std::size_t>(corner)];
    }
    Cell cell;
    if (MakeCell(points, cell)) times.cells_.push_back(cell);
  }
  return times;
}

absl::StatusOr<StepTime> StepTimes::At(const std::vector<int>& ring,
                                       std::int64_t atomic_batch) const {
  const std::string name = SmallestRotation(ring);
  const auto batch = static_cast<double>(atomic_batch);
  const auto curve = curves_.find(name);
  if (curve != curves_.end()) {
    const auto& [batches, times] = curve->second;
    if (batch >= batches.front() && batch <= batches.back() && batches.size() > 1) {
      const auto above = std::lower_bound(batches.begin() + 1, batches.end() - 1, batch);
      const auto hi = static_cast<std::size_t>(above - batches.begin());
      const double width = batches[hi] - batches[hi - 1];
      const double along = batch - batches[hi - 1];
      const StepTime &a = times[hi - 1], &b = times[hi];
      return StepTime{(b.step_s - a.step_s) / width * along + a.step_s,
                      (b.sync_s - a.sync_s) / width * along + a.sync_s};
    }
  } else {
    int replicas = 0;
    for (const int count : ring) replicas += count;
    const int nodes = std::min(static_cast<int>(ring.size()), kMostNodes);
    auto time = Between({static_cast<double>(nodes), static_cast<double>(replicas), batch});
    if (time.ok()) return time;
  }
  return absl::OutOfRangeError(absl::StrCat(
      "no step was measured on or around the ring ", name, " with an atomic batch of ",
      atomic_batch, "; batches of ", min_atomic_batch_, " to ", max_atomic_batch_, " were"));
}

absl::StatusOr<StepTime> StepTimes::Between(const std::array<double, 3>& at) const {
  for (const Cell& cell : cells_) {
    std::array<double, 4> weights{0, 0, 0, 1};
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t axis = 0; axis < 3; ++axis) {
        weights[i] += cell.inverse[i][axis] * (at[axis] - cell.last[axis]);
      }
      weights[3] -= weights[i];
    }
    if (*std::min_element(weights.begin(), weights.end()) < kOutside) continue;
    StepTime time;
    for (std::size_t i = 0; i < 4; ++i) {
      time.step_s += weights[i] * cell.times[i].step_s;
      time.sync_s += weights[i] * cell.times[i].sync_s;
    }
    return time;
  }
  return absl::OutOfRangeError("outside");
}

}  // namespace espalier
