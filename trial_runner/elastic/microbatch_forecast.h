#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "trial_runner/elastic/step_schedule.h"

namespace espalier {

// The samples of one forward pass on one replica: a slice of an epoch's order.
struct Microbatch {
  std::int64_t epoch = 0;  // from 0
  SampleSlice slice;

  friend bool operator==(const Microbatch&, const Microbatch&) = default;
};

// Where a replica is in the data, and what its next microbatches follow from.
struct MicrobatchStart {
  std::int64_t epoch = 0;
  std::int64_t epochs = 0;     // that the program means to train for
  std::int64_t cursor = 0;     // of the step under way
  std::size_t microbatch = 0;  // of that step, the next one
  std::int64_t epoch_size = 1;
  std::int64_t batch_size = 1;
  int rank = 0;
  int replicas = 1;
  std::int64_t max_atomic = 1;
  bool aligned = false;  // see PlanStep
};

// Predicts which microbatches a replica will be dealt as long as its group and its batch do not
// change, so that they can be read ahead. The forecast may turn out wrong at any step, which costs
// nothing but the reading.
class MicrobatchForecast {
 public:
  // An epoch of no samples, in which nothing comes.
  MicrobatchForecast() = default;
  explicit MicrobatchForecast(const MicrobatchStart& start);

  // The next microbatch, the present one first; nothing after the last epoch.
  std::optional<Microbatch> Next();

 private:
  void PlanFrom(std::int64_t cursor);

  MicrobatchStart at_;
  StepPlan plan_;
};

}  // namespace espalier
