#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace espalier {

// A step without accumulation, in seconds, and the part of it that waits for the all-reduce.
struct StepTime {
  double step_s = 0;
  double sync_s = 0;
};

// A measured step: on a ring of nodes ("12": one replica on a node, two on the next) or, where only
// the totals were noted, on so many nodes and replicas.
struct RingMeasurement {
  std::string ring;  // one digit a node, in its lexicographically smallest rotation
  std::int64_t atomic_batch = 0;
  StepTime time;
};
struct ScaleMeasurement {
  int nodes = 1;
  int replicas = 1;
  std::int64_t atomic_batch = 0;
  StepTime time;
};

// Measured step times of one application, with what lies between them: linear in the batch on a
// ring that was measured, else linear in (nodes, replicas, batch) within the first of the given
// tetrahedra that holds the point. Corners are counted through the distinct (nodes, replicas,
// batch) of the rings in ascending order, their times averaged, and on through the measurements by
// totals. Immutable.
class StepTimes {
 public:
  using Tetrahedron = std::array<int, 4>;

  // InvalidArgument names a corner that does not exist, or says that nothing was measured.
  static absl::StatusOr<StepTimes> Make(const std::vector<RingMeasurement>& rings,
                                        const std::vector<ScaleMeasurement>& scales,
                                        const std::vector<Tetrahedron>& tetrahedra);

  // `ring` holds the replicas on each node, all positive, in the order of the ring. More than 16
  // nodes count as 16. OutOfRange if it lies beyond what was measured.
  absl::StatusOr<StepTime> At(const std::vector<int>& ring, std::int64_t atomic_batch) const;

  std::int64_t min_atomic_batch() const { return min_atomic_batch_; }
  std::int64_t max_atomic_batch() const { return max_atomic_batch_; }

 private:
  struct Curve {  // ascending by batch
    std::vector<double> batches;
    std::vector<StepTime> times;
  };
  // Weights of corners 0 to 2 are rows of `inverse` times (point - corner 3).
  struct Cell {
    std::array<std::array<double, 3>, 3> inverse{};
    std::array<double, 3> last{};
    std::array<StepTime, 4> times{};
  };
  struct Point {
    std::array<double, 3> at{};
    StepTime time;
  };

  static std::vector<Point> Corners(const std::vector<RingMeasurement>& rings,
                                    const std::vector<ScaleMeasurement>& scales);
  static bool MakeCell(const std::array<const Point*, 4>& corners, Cell& cell);
  absl::StatusOr<StepTime> Between(const std::array<double, 3>& at) const;

  std::map<std::string, Curve> curves_;
  std::vector<Cell> cells_;
  std::int64_t min_atomic_batch_ = 0;
  std::int64_t max_atomic_batch_ = 0;
};

}  // namespace espalier
