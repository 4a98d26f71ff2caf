#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "allocator/goodput/goodput.h"
#include "allocator/simulator/step_times.h"

namespace espalier {

// What training with one global batch size looked like at the end of each epoch.
struct RecordedEpoch {
  double progress = 0;  // in steps' worth at the initial batch size
  double steps = 0;     // taken so far
  GradientNoise noise;  // at the initial batch size
};
struct RecordedBatch {
  std::int64_t global_batch = 0;
  std::vector<RecordedEpoch> epochs;
};

// Everything recorded of one application.
struct ApplicationRecord {
  std::string name;
  int epochs = 1;                 // how many it trains, at any batch size
  std::int64_t max_atomic = 0;    // 0: the largest whose step was measured
  std::int64_t pinned_batch = 0;  // >0: trains this batch on one slot, whatever is offered
  std::vector<RecordedBatch> batches{};
  std::vector<RingMeasurement> rings{};
  std::vector<ScaleMeasurement> scales{};
  std::vector<StepTimes::Tetrahedron> tetrahedra{};
};

// A training program as it was measured, which is the truth of a simulation. Between two recorded
// batch sizes its statistics are linear in the batch size. Immutable.
class Application {
 public:
  // InvalidArgument names the application and what its record lacks.
  static absl::StatusOr<std::shared_ptr<const Application>> Make(const ApplicationRecord& record);

  const std::string& name() const { return name_; }
  int epochs() const { return epochs_; }
  std::int64_t pinned_batch() const { return pinned_batch_; }
  const BatchBounds& bounds() const { return bounds_; }
  const StepTimes& step_times() const { return step_times_; }

  // The progress at which so many epochs are over, with the batch size that needs the least.
  double ProgressAfter(int epochs) const;
  // Steps at `global_batch` until epoch `epoch`, counted from zero, is over.
  absl::StatusOr<double> StepsThrough(std::int64_t global_batch, int epoch) const;
  absl::StatusOr<GradientNoise> NoiseIn(std::int64_t global_batch, int epoch) const;

 private:
  struct Neighbours {
    const RecordedBatch* lower;
    const RecordedBatch* upper;
    // Interpolates between the values of both; they are the same one where the batch size was
    // recorded.
    double Mix(double of_lower, double of_upper, std::int64_t global_batch) const;
  };

  Application(const ApplicationRecord& record, StepTimes step_times);
  absl::StatusOr<Neighbours> Around(std::int64_t global_batch) const;

  std::string name_;
  int epochs_;
  std::int64_t pinned_batch_;
  std::vector<RecordedBatch> batches_;  // ascending
  BatchBounds bounds_;
  StepTimes step_times_;
  std::vector<double> progress_after_;
};

}  // namespace espalier
