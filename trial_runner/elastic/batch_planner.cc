#include "trial_runner/elastic/batch_planner.h"

#include <algorithm>

#include "trial_runner/elastic/noise_scale.h"

namespace espalier {

std::int64_t BatchPlanner::MaxAtomic(const TrainingPosition& position, int replicas) const {
  const std::int64_t most =
      position.atomic_batch_size > 0 ? position.atomic_batch_size : bounds_.max_atomic;
  const bool in_two = replicas == 1 && bounds_.SplitsFixedAlone(position.batch_size);
  if (in_two) return std::min(most, (position.batch_size + 1) / 2);
  // Shares of two and of one are not cut alike by ones.
  return aligned_ ? std::max<std::int64_t>(most, 2) : most;
}

StepPlan BatchPlanner::Plan(const TrainingPosition& position, int rank, int size,
                            int whole_size) const {
  return PlanStep(position.cursor, epoch_size_, position.batch_size, rank, size,
                  MaxAtomic(position, whole_size), aligned_);
}

StepPlan BatchPlanner::FullPlan(const TrainingPosition& position, int whole_size) const {
  return PlanStep(0, std::max(epoch_size_, position.batch_size), position.batch_size, 0, whole_size,
                  MaxAtomic(position, whole_size));
}

double BatchPlanner::GainOf(double samples, const TrainingPosition& position) const {
  const auto initial = static_cast<double>(bounds_.initial);
  const GradientNoise noise = position.Noise(initial);
  return Gain(noise.sqr, noise.var, samples / initial);
}

void BatchPlanner::Learn(const std::vector<ProfileEntry>& times, const TrainingPosition& position,
                         std::int64_t atomic, int nodes, int replicas) {
  if (!tuner_) return;
  tuner_->Add(times);
  const bool known =
      std::any_of(position.models.begin(), position.models.end(), [](const ModelPosition& m) {
        return std::any_of(m.noise.begin(), m.noise.end(),
                           [](const NoiseAverages& n) { return !n.empty(); });
      });
  const auto initial = static_cast<double>(bounds_.initial);
  const GradientNoise noise = known ? position.Noise(initial) : GradientNoise{};
  const auto choice = tuner_->Choose(nodes, replicas, noise, position.batch_size, atomic);
  if (!choice) return;
  proposal_ = {.batch_size = choice->global(), .atomic_batch_size = choice->atomic_batch_size};
}

bool BatchPlanner::Adopt(const Proposal& agreed, TrainingPosition& position) {
  if (agreed.batch_size <= 0) return false;
  proposal_ = {};
  position.atomic_batch_size = agreed.atomic_batch_size;
  const bool changes = position.batch_size != agreed.batch_size;
  position.batch_size = agreed.batch_size;
  return changes;
}

}  // namespace espalier
