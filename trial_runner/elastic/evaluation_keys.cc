#include "trial_runner/elastic/evaluation_keys.h"

#include <utility>

namespace espalier {

EvaluationKey EvaluationKeys::Next(std::int64_t epoch, const TrainingPosition& position) {
  // Who joined in mid-epoch has yet to come to the epoch's loop: the others did before its first
  // step what the program asks for here.
  const bool came_late = !came_to_loop_ && position.epoch == epoch && position.cursor > 0;
  const std::int64_t step = came_late ? position.FirstEvaluatedStep(epoch) : position.step;
  // A spare that left between two evaluations of an epoch and comes back when the others have gone
  // on to another one is still between the two, whatever step they are at.
  const bool trained = std::exchange(trained_since_last_, false);
  const bool goes_on = next_.epoch == epoch && !trained && position.epoch > epoch;
  if (goes_on) {
    next_.step = step;
  } else if (next_.epoch != epoch || next_.step != step) {
    next_ = {.epoch = epoch, .step = step, .call = 0};
  }
  const EvaluationKey key = next_;
  ++next_.call;
  return key;
}

}  // namespace espalier
