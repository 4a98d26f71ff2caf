#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/goodput/goodput.h"
#include "allocator/goodput/profile.h"
#include "allocator/simulator/application.h"
#include "allocator/simulator/cluster.h"

namespace espalier {

// Remembers step times that were looked up before, since the same few shapes come again and again.
// One owner.
class StepTimeMemory {
 public:
  absl::StatusOr<StepTime> At(const Application& application, const std::vector<int>& ring,
                              std::int64_t atomic_batch);

 private:
  using Key = std::tuple<const Application*, std::vector<int>, std::int64_t>;
  std::map<Key, StepTime> known_;
};

// A microbatch size, and how many microbatches are accumulated before the one with the all-reduce.
struct BatchSplit {
  std::int64_t atomic = 0;
  std::int64_t accumulation = 0;
};

// Splits a global batch evenly over `replicas`, rounded up; a lone replica whose batch is not the
// initial one accumulates, since it has to measure its gradient noise.
BatchSplit SplitBatch(const BatchBounds& bounds, std::int64_t global_batch, int replicas);

// A recorded training job under way: an application and how far it has come. Like the agent of the
// Pollux paper, it measures step time and noise while it trains, fits its model to them and chooses
// its batch by the model. Progress counts steps worth as much as one at the initial batch size; an
// epoch ends at fixed progress, whatever the batch.
class TrainingJob {
 public:
  // `job` and `memory` must outlive it.
  TrainingJob(const ClusterJob& job, const ClusterOptions& options, StepTimeMemory& memory);

  // Trains from `from_s` for some seconds on the slots it has. Fails where its shape lies beyond
  // what was recorded.
  absl::Status Advance(double from_s, double seconds);
  // Moves it onto other slots: replicas on each node, in the order of the ring. None: pauses it.
  absl::Status Resize(std::vector<int> ring);
  // The seconds until it comes back from a resize, has measured a new shape, or ends an epoch; none
  // while it has no slots.
  std::optional<double> ToNextEvent();

  const ClusterJob& job() const { return *job_; }
  bool done() const { return completed_s_.has_value(); }
  std::optional<double> completed_s() const { return completed_s_; }
  int slots() const { return slots_; }
  int nodes() const { return static_cast<int>(ring_.size()); }
  int resizes() const { return std::max(0, placements_ - 1); }
  double attained_service() const { return attained_service_; }
  double held_s() const { return held_s_; }
  bool resizing() const { return resize_left_s_ > 0 && slots_ > 0; }

  // What it tells the policy.
  const std::optional<GoodputModel>& Model();
  const Application& application() const { return *application_; }
  int max_profiled_replicas() const { return profile_.max_replicas(); }
  // The most slots it can use at all.
  int MaxSlots() const;
  // The batch it must keep; 0 if it adapts.
  std::int64_t fixed_batch() const { return fixed_batch_; }
  absl::StatusOr<double> StepsLeft() const;
  // Seconds to its end on one slot by its model, 0 without one.
  double WorkLeftOnOneSlot();

 private:
  absl::Status ChooseBatch();
  absl::Status LookUpSpeed();
  void Report();
  bool reported() const;
  double TrainUpTo(double from_s, double seconds);
  void EndEpoch(double at_s);
  double ToEpochEnd() const;
  void Hold(double seconds);
  ProfileKey Shape() const { return {nodes(), slots_, split_.atomic}; }
  std::int64_t GlobalBatch() const { return slots_ * split_.atomic * (split_.accumulation + 1); }

  const ClusterJob* job_;
  const Application* application_;
  StepTimeMemory* memory_;
  bool whole_seconds_;  // the end of an epoch is rounded to them
  double resize_cost_s_;
  double first_profile_s_;
  std::int64_t fixed_batch_ = 0;

  std::vector<int> ring_;
  int slots_ = 0;
  BatchSplit split_;
  double resize_left_s_ = 0;
  double progress_ = 0;
  int epoch_ = 0;
  std::optional<double> completed_s_;
  int placements_ = 0;
  double attained_service_ = 0;
  double held_s_ = 0;

  // How fast it trains now; looked up again when shape, batch or epoch changed.
  bool speed_is_stale_ = true;
  StepTime step_;
  GradientNoise true_noise_;
  double progress_per_s_ = 0;
  double trained_in_shape_s_ = 0;

  // What it has measured, and made of it.
  std::set<ProfileKey> profiled_;
  Profile profile_;
  std::optional<GradientNoise> noise_;
  std::optional<ThroughputParams> params_;
  std::optional<GoodputModel> model_;
  double one_slot_rate_ = 0;  // progress a second, by the model; 0: not computed
  bool fit_is_stale_ = false;
  bool model_is_stale_ = false;
  bool batch_is_stale_ = false;
};

}  // namespace espalier
