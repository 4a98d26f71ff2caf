// TrainingEngine's group: how it changes, and how it divides for steps that have too few samples
// for all of its members.

#include <algorithm>
#include <utility>

#include "trial_runner/torch/engine/training_engine.h"

namespace espalier {

// ---- steps of few samples -----------------------------------------------------------------------

// Members without a sample sit the step out: what the program does in its loop, in whatever order,
// is done by the others, and its outcome is handed over. False if the group was lost: then another
// has formed.
bool TrainingEngine::Divide() {
  // What the others merge meanwhile would take the place of what these have added until now.
  bool all_know = false;
  if (!sums_.Merge(all_know).ok()) {
    Regroup(/*broken=*/true);
    return false;
  }
  divided_at_ = state_.position.step;
  group_.Narrow(static_cast<int>(step_.plan()->samples));
  return true;
}

// The end of such a step, once the program has done all that belongs to it. `in_loop`: what was
// evaluated since was evaluated within its loop.
void TrainingEngine::ComeTogether(bool in_loop) {
  TrainingPosition& p = state_.position;
  step_.Settle();
  state_.SyncStates();
  const bool sat_out = group_.rank() >= group_.size();
  const std::int64_t evaluations =
      in_loop && p.step > divided_at_ ? evaluation_keys_.CallsAfter(local_epoch_, p.step) : 0;
  const auto said =
      group_.Widen({.kind = ProgramPlace::Kind::kStep, .epoch = p.epoch, .step = divided_at_ + 1},
                   {group_.Pending() ? 1 : 0, loop_ended_ && InMidEpoch() ? 1 : 0, evaluations});
  if (!said.ok()) {
    Regroup(/*broken=*/true);
    return;
  }
  step_.ClearPlan();
  step_.CompareAnew();
  last_step_end_ = Clock::now();
  regroup_due_ = std::all_of(said->begin(), said->end(),
                             [](const std::vector<std::int64_t>& of) { return of[0] != 0; });
  if (sat_out) {
    // Rank 0 always has a sample.
    others_left_ = said->front()[1] != 0;
    if (const std::int64_t calls = said->front()[2]; calls > 0) {
      evaluation_keys_.Skip({.epoch = local_epoch_, .step = p.step, .call = calls});
    }
    step_.StartGroup();
    trial_.progress = p.progress;
  }
  if (p.step != divided_at_) step_.FailAfterSkippedSteps();
}

// ---- other groups -------------------------------------------------------------------------------

void TrainingEngine::ReleaseMemory() {
  step_.DropGradients();
  EmptyCache(trial_.device);
}

void TrainingEngine::RegroupIfDue() {
  // Not where a step is still planned: its members may ask for their microbatch again.
  if (group_.narrowed() && !step_.plan()) ComeTogether(/*in_loop=*/true);
  // Who joined at the epoch's end would go through a loop over no batches, and the program behind
  // it would have no loss.
  while (regroup_due_ && !AtEpochsLastStep()) {
    // Of members that are about to leave one may be alone in having left out the last step.
    const TrainingPosition& p = state_.position;
    const absl::Status met =
        group_.Meet({.kind = ProgramPlace::Kind::kStep, .epoch = p.epoch, .step = p.step});
    met.ok() ? Regroup(/*broken=*/false) : StartOver(met);
  }
}

bool TrainingEngine::AtEpochsLastStep() const {
  const TrainingPosition& p = state_.position;
  return p.epoch == local_epoch_ && order_->size() - p.cursor < p.batch_size;
}

void TrainingEngine::RegroupBeforeEvaluation() {
  AgreeOnProgram();
  if (!loop_ended_) return;
  if (group_.narrowed() && !step_.plan()) ComeTogether(/*in_loop=*/true);
  if (!InMidEpoch()) RegroupIfDue();
}

void TrainingEngine::Regroup(bool broken) {
  regroup_due_ = false;
  step_.TakeParted();  // the next group's members will have one state
  step_.Drop(/*lost=*/broken);
  const bool reported = group_.rank() == 0;
  TrainingPosition& p = state_.position;
  // While those who leave are still there. If it fails everybody keeps what is his.
  bool all_know = false;
  if (!broken) sums_.Merge(all_know).IgnoreError();
  state_.SyncStates();
  const std::int64_t step = p.step;
  const ReplicaId self = trial_.replica;
  const int size = group_.whole_size();
  group_.Regroup(last_step_end_);
  has_grown_ = group_.whole_size() > size;
  growth_step_s_.reset();
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
  batches_.DropProposal();
  FollowBatchSize();
  step_.StartGroup();
  step_.DrawAlike();
  trial_.progress = p.progress;
  last_step_end_ = Clock::now();
  meter_.StartGroup(reported, last_step_end_);
}

// ---- steps that some members have left out ------------------------------------------------------

// The group stays as it is. False if it was lost: then another has formed.
bool TrainingEngine::Equalise(TrainingState::Extent extent) {
  state_.SyncStates();
  // Those who take over another member's state lose the sums that are their own.
  bool all_know = false;
  absl::Status equal = sums_.Merge(all_know);
  state_.extent = extent;
  if (equal.ok()) equal = group_.Equalise();
  state_.extent = TrainingState::Extent::kAll;
  if (!equal.ok()) Regroup(/*broken=*/true);
  return equal.ok();
}

void TrainingEngine::Agree() {
  step_.Drop(/*lost=*/true);
  state_.sums.DropStep();
  if (!Equalise(TrainingState::Extent::kAll)) return;
  step_.StartGroup();
  step_.DrawAlike();
  trial_.progress = state_.position.progress;
  last_step_end_ = Clock::now();
}

void TrainingEngine::AgreeOnProgram() {
  if (step_.TakeParted() && Equalise(TrainingState::Extent::kProgram)) step_.CompareAnew();
}

}  // namespace espalier
