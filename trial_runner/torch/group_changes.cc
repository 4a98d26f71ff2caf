// TrainingEngine's group: how it changes, and how it divides for steps that have too few samples
// for all of its members.

#include <algorithm>
#include <utility>

#include "trial_runner/torch/training_engine.h"

namespace espalier {

// ---- steps of few samples -----------------------------------------------------------------------

// Members without a sample sit the step out: what the program does in its loop, in whatever order,
// is done by the others, and its outcome is handed over. False if the group was lost: then another
// has formed.
bool TrainingEngine::Divide() {
  // What the others merge meanwhile would take the place of what these have added until now.
  bool all_know = false;
  if (!MergeSums(all_know).ok()) {
    Regroup(/*broken=*/true);
    return false;
  }
  divided_at_ = state_.position.step;
  group_.Narrow(static_cast<int>(plan_->samples));
  return true;
}

// The end of such a step, once the program has done all that belongs to it. `in_loop`: what was
// evaluated since was evaluated within its loop.
void TrainingEngine::ComeTogether(bool in_loop) {
  TrainingPosition& p = state_.position;
  SettleSteps();
  state_.SyncStates();
  const bool sat_out = group_.rank() >= group_.size();
  const bool evaluated = in_loop && next_evaluation_.epoch == local_epoch_ &&
                         next_evaluation_.step == p.step && p.step > divided_at_;
  const auto said =
      group_.Widen({.kind = ProgramPlace::Kind::kStep, .epoch = p.epoch, .step = divided_at_ + 1},
                   {group_.Pending() ? 1 : 0, loop_ended_ && InMidEpoch() ? 1 : 0,
                    evaluated ? next_evaluation_.call : 0});
  if (!said.ok()) {
    Regroup(/*broken=*/true);
    return;
  }
  plan_.reset();
  last_step_end_ = Clock::now();
  regroup_due_ = std::all_of(said->begin(), said->end(),
                             [](const std::vector<std::int64_t>& of) { return of[0] != 0; });
  if (sat_out) {
    // Rank 0 always has a sample.
    others_left_ = said->front()[1] != 0;
    if (const std::int64_t calls = said->front()[2]; calls > 0) {
      next_evaluation_ = {local_epoch_, p.step, calls};
    }
    for (const auto& model : models_) model->StartGroup(collectives_->FromDeviceToDevice());
    trial_.progress = p.progress;
  }
  if (p.step == divided_at_) return;
  for (std::size_t i = 0; i < models_.size(); ++i) FailAfterSkippedSteps(*models_[i], p.models[i]);
}

// ---- other groups -------------------------------------------------------------------------------

void TrainingEngine::ReleaseMemory() {
  for (const auto& model : models_) model->DropGradients();
  EmptyCache(trial_.device);
}

void TrainingEngine::RegroupIfDue() {
  // Not where a step is still planned: its members may ask for their microbatch again.
  if (group_.narrowed() && !plan_) ComeTogether(/*in_loop=*/true);
  if (regroup_due_) Regroup(/*broken=*/false);
}

void TrainingEngine::RegroupBeforeEvaluation() {
  if (!loop_ended_) return;
  if (group_.narrowed() && !plan_) ComeTogether(/*in_loop=*/true);
  if (!InMidEpoch()) RegroupIfDue();
}

void TrainingEngine::Regroup(bool broken) {
  regroup_due_ = broken_ = false;
  SettleSteps();
  if (device_times_) device_times_->Reset();
  if (broken) {
    dropped_ = true;
    for (const auto& model : models_) model->Renew();
  }
  plan_.reset();
  const bool reported = group_.rank() == 0;
  TrainingPosition& p = state_.position;
  // While those who leave are still there. If it fails everybody keeps what is his.
  bool all_know = false;
  if (!broken) MergeSums(all_know).IgnoreError();
  state_.SyncStates();
  const std::int64_t step = p.step;
  const ReplicaId self = trial_.replica;
  group_.Regroup(last_step_end_);
  if (trial_.replica != self) {  // it left, and comes back as another
    state_.sums.DropStep();
    state_.sums.Forget(0, state_.sums.own().size());
  } else if (broken && p.step > step) {
    state_.sums.CountStep();  // others had come to the step's end
  } else if (broken) {
    state_.sums.DropStep();
  }
  // The global batch stays; its best division for the new group is to be seen.
  p.atomic_batch_size = 0;
  proposed_batch_ = 0;
  for (const auto& model : models_) model->StartGroup(collectives_->FromDeviceToDevice());
  profile_.StartGroup();
  replica_times_.clear();
  if (!reported) profile_.Take();  // another has reported these steps
  trial_.progress = p.progress;
  last_progress_ = last_step_end_ = Clock::now();
  trained_samples_ = 0;
}

}  // namespace espalier
