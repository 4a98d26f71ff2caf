#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "allocator/goodput/goodput.h"
#include "allocator/goodput/profile.h"
#include "trial_runner/elastic/batch_tuner.h"
#include "trial_runner/elastic/step_schedule.h"
#include "trial_runner/elastic/training_position.h"

namespace espalier {

// Decides the batch of a trial's steps and how the replicas divide it: as the program asked for,
// and in adaptive mode as step times and gradient noise suggest. The sizes that all replicas go by
// are in the position; what rank 0 would like them to be is proposed here, until a step's
// all-reduce has carried it to everybody. Pure.
class BatchPlanner {
 public:
  // Both 0: none.
  struct Proposal {
    std::int64_t batch_size = 0;  // global
    std::int64_t atomic_batch_size = 0;
  };

  void SetData(std::int64_t epoch_size, const BatchBounds& bounds) {
    epoch_size_ = epoch_size;
    bounds_ = bounds;
  }
  std::int64_t epoch_size() const { return epoch_size_; }
  const BatchBounds& bounds() const { return bounds_; }
  // For adaptive mode, once the bounds are final.
  void Tune() { tuner_.emplace(bounds_); }
  // From here on all replicas cut their shares into equally many microbatches.
  void Align() { aligned_ = true; }
  bool aligned() const { return aligned_; }

  // The most samples of a microbatch in a group of so many.
  std::int64_t MaxAtomic(const TrainingPosition& position, int replicas) const;
  // The next step of the replica with that rank, see PlanStep. The group has `whole_size` replicas,
  // and `size` of them take part in the step.
  StepPlan Plan(const TrainingPosition& position, int rank, int size, int whole_size) const;
  // What a full step of the present batch is on rank 0.
  StepPlan FullPlan(const TrainingPosition& position, int whole_size) const;

  // What a step of so many samples is worth in steps of the initial size.
  double GainOf(double samples, const TrainingPosition& position) const;

  // In adaptive mode: learns from the times that rank 0 has measured, and may propose another batch
  // than the present one, whose microbatches have `atomic` samples.
  void Learn(const std::vector<ProfileEntry>& times, const TrainingPosition& position,
             std::int64_t atomic, int nodes, int replicas);
  const Proposal& proposal() const { return proposal_; }
  void DropProposal() { proposal_ = {}; }
  // All replicas have heard of this one. Returns whether the global batch changes.
  bool Adopt(const Proposal& agreed, TrainingPosition& position);

 private:
  std::int64_t epoch_size_ = 1;
  BatchBounds bounds_;
  std::optional<BatchTuner> tuner_;  // in adaptive mode
  bool aligned_ = false;
  Proposal proposal_;
};

}  // namespace espalier
