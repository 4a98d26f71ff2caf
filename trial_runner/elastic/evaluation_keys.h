#pragma once

#include <cstdint>

#include "trial_runner/elastic/training_position.h"

namespace espalier {

// Counts the evaluations that the program of one replica asks for, so that each call gets the key
// that the same call has on the other replicas. The program may lag behind the trial's position
// after a regroup. Pure.
class EvaluationKeys {
 public:
  // The program goes on to an epoch.
  void BeginEpoch() { came_to_loop_ = false; }
  // It comes to its loop over the epoch's microbatches, and takes one.
  void ComeToLoop() { came_to_loop_ = true; }
  void BeginMicrobatch() { trained_since_last_ = true; }

  // The key of the call that it makes now, in its epoch `epoch`.
  EvaluationKey Next(std::int64_t epoch, const TrainingPosition& position);

  // How many calls there were in that epoch after that step, as far as this replica's program has
  // come since.
  std::int64_t CallsAfter(std::int64_t epoch, std::int64_t step) const {
    return next_.epoch == epoch && next_.step == step ? next_.call : 0;
  }
  // Others have made so many there, in a step that this replica sat out.
  void Skip(const EvaluationKey& next) { next_ = next; }

 private:
  EvaluationKey next_;
  bool came_to_loop_ = false;
  bool trained_since_last_ = false;  // its program took a microbatch
};

}  // namespace espalier
