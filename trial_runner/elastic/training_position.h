#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "allocator/goodput/goodput.h"
#include "trial_runner/elastic/noise_scale.h"

namespace espalier {

// Names one call of Evaluate() in the same way on every replica, also on one that joined later:
// the epoch the program is in, the optimizer steps done, and how many calls came before it there.
struct EvaluationKey {
  std::int64_t epoch = 0;
  std::int64_t step = 0;
  std::int64_t call = 0;

  friend auto operator<=>(const EvaluationKey&, const EvaluationKey&) = default;
};

// The part of the position that each model of a trial has for itself.
struct ModelPosition {
  std::vector<NoiseAverages> noise;  // by parameter group
  double loss_scale = 0;             // of mixed precision; 0: none
  std::int64_t good_steps = 0;       // since the loss scale changed
  std::int64_t skipped_steps = 0;    // in a row, up to now
};

// How far a trial's training is, apart from its tensors: what a regroup hands to replicas that join
// and a checkpoint keeps. The same on all members of a group between two steps.
struct TrainingPosition {
  static constexpr std::size_t kKeptEvaluations = 32;

  std::int64_t step = 0;               // optimizer steps done
  std::int64_t epoch = 0;              // passes over the data finished
  std::int64_t cursor = 0;             // samples consumed of the present pass
  std::int64_t evaluations = 0;        // done in all
  std::int64_t batch_size = 0;         // global, of the next step; 0: not chosen yet
  std::int64_t atomic_batch_size = 0;  // chosen along with it in adaptive mode; 0: by schedule
  // Of the epoch after the present one, as the program has said since that one's steps ended; 0: as
  // it is. Fixed mode only, like loader_batch_size.
  std::int64_t next_batch_size = 0;
  // The batch with which the program began; 0: not known. Where it begins with another one, what it
  // has set since does not count.
  std::int64_t loader_batch_size = 0;
  double progress = 0;                 // scale-invariant steps
  std::int64_t skipped_steps = 0;      // in all: their gradients were not finite
  // Steps that this member's program left out where those of others did not. Members that have more
  // of them than others have what all go on from: see TrainingEngine::Agree.
  std::int64_t left_out = 0;
  // In the step under way, how many of the trial's models have done theirs. The others have yet to
  // do it, on the same samples.
  std::int64_t models_stepped = 0;
  std::vector<ModelPosition> models;
  std::map<EvaluationKey, std::vector<double>> evaluation_results;  // the latest

  // Grows with everything that members do together: when two positions are compared, the one with
  // the larger order is further.
  auto Order() const { return std::tuple(step, epoch, evaluations, models_stepped, left_out); }

  // Over all models and groups: |true gradient|^2, and the variance of a gradient of `samples`.
  GradientNoise Noise(double samples) const;

  void AddEvaluation(const EvaluationKey& key, std::vector<double> result);
  // For a program that is still on its way to an epoch that the group has reached without it: the
  // result of that call, or the newest that is kept; NaNs if nothing is kept.
  std::vector<double> PastEvaluation(const EvaluationKey& key, std::size_t sums) const;
  // The step after which the epoch was evaluated first, of what is kept; the present one if nothing
  // of that epoch is.
  std::int64_t FirstEvaluatedStep(std::int64_t of_epoch) const;

  // One line of text each; numbers keep all their digits.
  std::string Encode() const;
  static absl::StatusOr<TrainingPosition> Decode(std::string_view text);
};

}  // namespace espalier
