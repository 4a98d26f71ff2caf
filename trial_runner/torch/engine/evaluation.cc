// TrainingEngine's evaluations, and what else replicas compute together outside of steps.

#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "trial_runner/torch/engine/training_engine.h"

namespace espalier {

namespace {

// The sums over all samples, from each member's over its share of them.
absl::StatusOr<std::vector<double>> EvaluateShares(ReplicaGroup& group, std::int64_t size,
                                                   std::int64_t batch_size, std::size_t sums,
                                                   const TrainingEngine::SumOver& sum_over,
                                                   bool may_leave, bool& all_know) {
  const SampleSlice share = CutEvenly({0, size}, group.rank(), group.size());
  auto totals = std::make_shared<std::vector<double>>(sums + 1);
  for (std::int64_t done = 0; done < share.size; done += batch_size) {
    if (group.Abandoned()) return absl::AbortedError("the group is broken");
    const std::vector<double> part = sum_over(
        at::arange(share.begin + done, share.begin + std::min(done + batch_size, share.size)));
    if (part.size() != sums) {
      BadUse(absl::StrCat("EvaluateSums: the function gave ", part.size(), " sums: want ", sums));
    }
    for (std::size_t i = 0; i < part.size(); ++i) (*totals)[i] += part[i];
  }
  totals->back() = may_leave && group.Pending() ? 1 : 0;
  ESPALIER_RETURN_IF_ERROR(group.AllReduceSum(CollectiveBuffer::Of(totals)));
  all_know = !group.narrowed() && std::lround(totals->back()) == group.size();
  return std::vector<double>(totals->begin(), totals->end() - 1);
}

}  // namespace

ProgramPlace TrainingEngine::PlaceOf(const EvaluationKey& key, std::int64_t accumulator) {
  const auto kind = accumulator > 0 ? ProgramPlace::Kind::kSums : ProgramPlace::Kind::kEvaluation;
  return {.kind = kind,
          .epoch = key.epoch,
          .step = key.step,
          .call = key.call,
          .accumulator = accumulator};
}

// What all members compute together at a place that they all come to, unless it is known already.
// Where the group is lost meanwhile, the next one does it again.
std::vector<double> TrainingEngine::ComputeTogether(const EvaluationKey& key,
                                                    std::int64_t accumulator, std::size_t sums,
                                                    const Computation& compute) {
  TrainingPosition& p = state_.position;
  EvaluationState known = StateOf(key);
  for (; known == EvaluationState::kToDo; known = StateOf(key)) {
    bool all_know = false;
    const absl::Status met = group_.Meet(PlaceOf(key, accumulator));
    const auto result = met.ok() ? compute(all_know) : absl::StatusOr<std::vector<double>>(met);
    if (!result.ok()) {
      StartOver(met);
      continue;
    }
    p.AddEvaluation(key, *result);
    last_step_end_ = Clock::now();
    step_.DrawAlike();
    if (!all_know) continue;
    regroup_due_ = true;
    if (!AtEpochsLastStep()) Regroup(/*broken=*/false);
  }
  return known == EvaluationState::kDone ? p.evaluation_results.at(key)
                                         : p.PastEvaluation(key, sums);
}

// Running statistics differ between replicas; rank 0's count, as they do in a checkpoint.
absl::Status TrainingEngine::TakeBuffersOfRank0() {
  if (group_.size() == 1 || step_.models().empty()) return absl::OkStatus();
  state_.extent = TrainingState::Extent::kBuffers;
  const absl::Cleanup restore = [this] { state_.extent = TrainingState::Extent::kAll; };
  ESPALIER_RETURN_IF_ERROR(step_.CompareBuffers());
  ESPALIER_RETURN_IF_ERROR(group_.TakeStateOfRank0());
  step_.KeepBuffers();
  return absl::OkStatus();
}

std::vector<double> TrainingEngine::Evaluate(std::int64_t size, std::int64_t batch_size,
                                             std::size_t sums, const SumOver& sum_over) {
  if (size < 1 || batch_size < 1) BadUse("Evaluate: size and batch_size are positive numbers");
  if (!group_.joined()) BadUse("Evaluate was called before NextEpoch");
  if (step_.answer_due()) BadUse("Evaluate was called where Step was due");
  RegroupBeforeEvaluation();
  const EvaluationKey key = evaluation_keys_.Next(local_epoch_, state_.position);

  const auto& models = step_.models();
  for (const auto& model : models) model->model().BeginEvaluation();
  const absl::Cleanup restore_modes = [&] {
    for (const auto& model : models) model->model().EndEvaluation();
  };
  const at::NoGradGuard no_grad;
  return ComputeTogether(key, 0, sums, [&](bool& all_know) -> absl::StatusOr<std::vector<double>> {
    ESPALIER_RETURN_IF_ERROR(TakeBuffersOfRank0());
    return EvaluateShares(group_, size, batch_size, sums, sum_over, !InMidStep(), all_know);
  });
}

EvaluationKey TrainingEngine::BeginEvaluation() {
  if (!group_.joined()) BadUse("an evaluation was begun before the first epoch");
  RegroupBeforeEvaluation();
  return evaluation_keys_.Next(local_epoch_, state_.position);
}

TrainingEngine::EvaluationState TrainingEngine::StateOf(const EvaluationKey& key) const {
  const TrainingPosition& p = state_.position;
  if (p.evaluation_results.contains(key)) return EvaluationState::kDone;
  // A spare that was adopted comes this way when the others have long gone on.
  if (p.epoch > key.epoch || p.step > key.step) return EvaluationState::kPast;
  return EvaluationState::kToDo;
}

bool TrainingEngine::ShareBuffers(const EvaluationKey& key, bool ends) {
  if (group_.size() > 1 && !step_.models().empty()) {
    const absl::Status met =
        group_.Abandoned() ? absl::AbortedError("the group is broken") : group_.Meet(PlaceOf(key));
    if (!met.ok() || !TakeBuffersOfRank0().ok()) {
      StartOver(met);
      return false;
    }
  }
  if (ends) state_.position.AddEvaluation(key, {});
  step_.DrawAlike();
  return true;
}

bool TrainingEngine::MergeEvaluation(const EvaluationKey& key, std::int64_t accumulator) {
  bool all_know = false;
  const absl::Status met = group_.Abandoned() ? absl::AbortedError("the group is broken")
                                              : group_.Meet(PlaceOf(key, accumulator));
  if (!met.ok() || !sums_.Merge(all_know, !InMidStep()).ok()) {
    StartOver(met);
    return false;
  }
  state_.position.AddEvaluation(key, {});
  last_step_end_ = Clock::now();
  step_.DrawAlike();
  regroup_due_ = regroup_due_ || all_know;
  return true;
}

std::vector<double> TrainingEngine::SynchronizeSums(std::int64_t accumulator, std::size_t begin,
                                                    std::size_t count) {
  if (!group_.joined()) BadUse("Synchronize was called before NextEpoch");
  if (step_.answer_due() || InMidEpoch()) {
    BadUse(
        "Synchronize was called in mid-epoch, where replicas that join would not: call it after "
        "the last batch");
  }
  RegroupBeforeEvaluation();
  const EvaluationKey key = evaluation_keys_.Next(local_epoch_, state_.position);
  if (StateOf(key) == EvaluationState::kDone) state_.sums.Forget(begin, count);
  return ComputeTogether(key, accumulator, count,
                         [&](bool& all_know) -> absl::StatusOr<std::vector<double>> {
                           ESPALIER_RETURN_IF_ERROR(sums_.Merge(all_know, !InMidStep()));
                           return state_.sums.Take(begin, count);
                         });
}

}  // namespace espalier
