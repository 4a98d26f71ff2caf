#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "trial_runner/collectives/collectives.h"
#include "trial_runner/elastic/batch_planner.h"
#include "trial_runner/elastic/data_loader_options.h"
#include "trial_runner/elastic/evaluation_keys.h"
#include "trial_runner/elastic/microbatch_forecast.h"
#include "trial_runner/elastic/sample_order.h"
#include "trial_runner/elastic/step_schedule.h"
#include "trial_runner/torch/adaptive_data_parallel.h"
#include "trial_runner/torch/checkpoints/libtorch_checkpoint.h"
#include "trial_runner/torch/engine/optimizer_step.h"
#include "trial_runner/torch/engine/step_meter.h"
#include "trial_runner/torch/engine/trained_model.h"
#include "trial_runner/torch/engine/training_state.h"
#include "trial_runner/torch/group/replica_group.h"
#include "trial_runner/torch/group/shared_sums.h"
#include "trial_runner/torch/process/trial_context.h"

namespace espalier {

// What is behind AdaptiveDataParallel and AdaptiveDataLoader: the loop over epochs, steps and
// microbatches of one replica, one loop for all models of the trial. The position that members
// share moves on only when a collective has succeeded; whatever else happens, the step is planned
// anew from it.
class TrainingEngine {
 public:
  using Clock = ReplicaGroup::Clock;
  using SumOver = std::function<std::vector<double>(const at::Tensor& indices)>;

  // The trial's engine, made when it is first asked for.
  static std::shared_ptr<TrainingEngine> Of(TrialContext& trial);
  // Checkpoints are laid out by `format`; null: by LibTorch's.
  explicit TrainingEngine(TrialContext& trial, std::unique_ptr<CheckpointFormat> format = nullptr);

  // Returns the model's number, from 0.
  std::size_t AddModel(torch::nn::Module& model, torch::optim::Optimizer& optimizer,
                       const DataParallelOptions& options);
  // The same for a program that runs backward and steps the optimizer itself, see OpenPasses.
  std::size_t AddSteppedModel(std::unique_ptr<ModelPart> model,
                              std::unique_ptr<OptimizerPart> optimizer,
                              const DataParallelOptions& options) {
    return step_.AddSteppedModel(std::move(model), std::move(optimizer), options);
  }

  void SetData(std::int64_t dataset_size, const DataLoaderOptions& options);
  // Once training has begun: the global batch is of so many samples from the next epoch on, or
  // where the present one's first step is yet to come, from that on. All replicas call it alike at
  // the same place; one that joins later is told. It is also the batch for which learning rates are
  // meant, where the program named none. An error in adaptive mode, and in mid-epoch.
  void SetBatchSize(std::int64_t batch_size);
  // See AdaptiveDataParallel.
  void Rehearse(const std::function<void()>& microbatch) { step_.Rehearse(microbatch); }
  // The same for a program that runs backward and steps its optimizers itself: these steps come to
  // nothing.
  void RehearsePasses(const std::function<void()>& microbatch) { step_.RehearsePasses(microbatch); }
  // This replica, which is about to join a group, has no rehearsal, for that reason.
  void NotRehearsed(const std::string& why) { not_rehearsed_ = why; }
  // Of a microbatch as a replica's first one will be, as far as that is known before it joins.
  std::int64_t RehearsedSamples() const;
  at::Tensor RehearsedIndices();
  bool NextEpoch(std::int64_t epochs);
  std::int64_t epoch() const { return local_epoch_ + 1; }
  // This replica's next microbatch, the same until BeginMicrobatch; nothing when the epoch is over.
  std::optional<SampleSlice> NextMicrobatch();
  // The program has left its loop over the epoch's microbatches before they came to their end.
  void LeaveLoop() { loop_ended_ = true; }
  // What will follow if nothing changes, from the microbatch on that NextMicrobatch returned.
  MicrobatchForecast Forecast() const;
  // The microbatch's samples are at hand: the time that it takes counts from here, and Step has to
  // follow.
  void BeginMicrobatch();
  // Both of these in one, as indices.
  std::optional<at::Tensor> NextBatch();
  void Step(std::size_t model, const at::Tensor& loss) { Proceed(step_.Backward(model, loss)); }

  // Step in parts, for programs that run backward and step their optimizers themselves: see
  // OptimizerStep. EndMicrobatch skips what was left out.
  void OpenPasses() { step_.OpenPasses(); }
  void EndBackwards() { step_.EndBackwards(); }
  bool DefersHooks(std::size_t model) const { return step_.DefersHooks(model); }
  void HoldGradients(bool on) { step_.HoldGradients(on); }
  void ZeroGradients(std::size_t model, const std::vector<std::size_t>& parameters) {
    step_.ZeroGradients(model, parameters);
  }
  OptimizerStep::ModelOutcome StepModel(std::size_t model, double loss_scale);
  OptimizerStep::ModelOutcome PassOverModel(std::size_t model);
  void LeaveOutMicrobatch() { step_.LeaveOutMicrobatch(); }
  void EndMicrobatch();

  // For layers that compute over all samples of a step's microbatch, whichever replica has them.
  // From here on all members cut their shares into equally many microbatches.
  void AlignMicrobatches() { batches_.Align(); }
  // Whether there is a microbatch that others have a part of; also where it is to come to nothing,
  // since the group was lost in it.
  bool SumsOverStep() const { return step_.SumsOverStep(); }
  // The sum of these over all who have a part; bitwise the same on each. All call it alike, and go
  // on alike: where the group is lost meanwhile each gets its own back, as it does outside of
  // microbatches. `weighted`: each one's counts by the weight of its samples in the step, as its
  // gradients do, and the sum is in proportion to that of this replica's.
  at::Tensor SumOverStep(const at::Tensor& own, bool weighted) {
    return step_.SumOverStep(own, weighted);
  }

  std::vector<double> Evaluate(std::int64_t size, std::int64_t batch_size, std::size_t sums,
                               const SumOver& sum_over);

  SharedSums& sums() { return sums_; }
  // For Accumulator. `accumulator`: its number, from 1. Its sums are `count`, from `begin` on.
  std::vector<double> SynchronizeSums(std::int64_t accumulator, std::size_t begin,
                                      std::size_t count);

  // An evaluation that the program computes itself, or a place where sums are merged: all replicas
  // come to it, and it has a key.
  EvaluationKey BeginEvaluation();
  enum class EvaluationState {
    kToDo,
    kDone,  // its result has come from other replicas, or has been merged here
    kPast,  // the group has long gone on
  };
  EvaluationState StateOf(const EvaluationKey& key) const;
  // Before each member evaluates by itself: gives all of them the buffers of rank 0, so that they
  // evaluate one model, which is the one that checkpoints hold. `ends`: nothing will be merged, and
  // the evaluation is known as done. False as of MergeEvaluation.
  bool ShareBuffers(const EvaluationKey& key, bool ends);
  // Merges all sums; those of the program's are then the evaluation's result. `accumulator`: whose
  // sums the program asks for, from 1; 0: an evaluation. False if the group was lost, and another
  // has formed: StateOf tells what is to be done now.
  bool MergeEvaluation(const EvaluationKey& key, std::int64_t accumulator);

  const TrainingPosition& position() const { return state_.position; }
  const ReplicaGroup& group() const { return group_; }
  std::int64_t generation() const { return trial_.generation; }
  const TrainedModel& model(std::size_t number) const { return *step_.models()[number]; }
  std::uint64_t seed() const { return trial_.seed; }
  // What one step of the present batch size is worth in steps of the initial one.
  double CurrentGain() const {
    return batches_.GainOf(static_cast<double>(state_.position.batch_size), state_.position);
  }
  bool InLastMicrobatch() const { return step_.InLastMicrobatch(); }
  // See OptimizerStep.
  std::optional<std::uint64_t> TakeSeedOfAll() { return step_.TakeSeedOfAll(); }
  // Of the present step, on this replica.
  std::int64_t Microbatches() const {
    return step_.plan() ? std::ssize(step_.plan()->microbatches) : 0;
  }
  double BaseBatchSize(std::size_t number) const {
    return model(number).BaseBatchSize(static_cast<double>(batches_.bounds().initial));
  }
  // What the trial's order of `size` samples has at a slice of an epoch, into as many places.
  void CopySamples(std::int64_t size, std::int64_t epoch, const SampleSlice& slice,
                   std::int64_t* samples) const;

 private:
  void Join(std::int64_t epochs);
  // What follows from how far the step has come.
  void Proceed(OptimizerStep::Progress progress);
  void SendProgress();
  bool Divide();
  void ComeTogether(bool in_loop);
  // Leaves the present group, which is broken or which all members leave together, and returns in
  // the next one; what was begun is dropped.
  void Regroup(bool broken);
  // What the microbatch has brought came to nothing: see OptimizerStep::Progress::kGroupLost.
  void StartOver() { step_.disagreed() ? Agree() : Regroup(/*broken=*/true); }
  // The same where members could not meet.
  void StartOver(const absl::Status& met) {
    absl::IsFailedPrecondition(met) ? Agree() : Regroup(/*broken=*/true);
  }
  // Some members have left out a step that the others have taken. All go on from the state of
  // these, in which it is left out; what was begun since is dropped.
  void Agree();
  // After a step that some members have left out by themselves, and all for their sake: what the
  // program has done meanwhile, to schedules say, is on all members as it is on those.
  void AgreeOnProgram();
  bool Equalise(TrainingState::Extent extent);
  // Leaves it together with all others, if a step has found that all know of a newer one. Programs
  // do what belongs to a step before they come here, such as stepping a schedule.
  void RegroupIfDue();
  // Not in the loop over an epoch's microbatches, nor where it was left early: others would go on
  // with the next one.
  void RegroupBeforeEvaluation();
  bool InMidEpoch() const;
  // Too little is left of the epoch for a step of all members.
  bool AtEpochsLastStep() const;
  // Between two microbatches of a step: the group is not left by choice, because what the first one
  // has brought would be lost, and counted again.
  bool InMidStep() const { return step_.plan() && step_.next_microbatch() > 0; }
  // Of gradients, and of the device what LibTorch keeps.
  void ReleaseMemory();
  using Computation = std::function<absl::StatusOr<std::vector<double>>(bool& all_know)>;
  std::vector<double> ComputeTogether(const EvaluationKey& key, std::int64_t accumulator,
                                      std::size_t sums, const Computation& compute);
  absl::Status TakeBuffersOfRank0();
  static ProgramPlace PlaceOf(const EvaluationKey& key, std::int64_t accumulator = 0);
  void FinishEpoch();
  std::int64_t MaxUnsplit() const;
  std::string WhyNotRehearsed() const;  // empty: it was
  void EndStep();
  void SetBounds(const BatchBounds& bounds);
  // Fixed mode: the bounds are those of the batch in the position, which others may have brought.
  void FollowBatchSize();
  BatchBounds CheckedBounds(std::int64_t batch_size) const;

  TrialContext& trial_;
  const std::unique_ptr<CheckpointFormat> format_;
  std::unique_ptr<Collectives> collectives_;
  TrainingState state_;
  ReplicaGroup group_;
  SharedSums sums_;

  // Set by the loader.
  DataLoaderOptions data_options_;
  std::optional<SampleOrder> order_;
  BatchPlanner batches_;
  StepMeter meter_;
  OptimizerStep step_;
  bool regroup_due_ = false;  // the last step has found that all know of a newer generation
  Clock::time_point last_step_end_ = Clock::now();
  std::string not_rehearsed_;  // why
  // Of the first step after the group has grown, until it can be compared with the second one.
  std::optional<double> growth_step_s_;
  bool has_grown_ = false;    // and has not stepped since
  double growth_cost_s_ = 0;  // by which the first one was longer

  // Where the program is, which may lag behind the position after a regroup.
  std::int64_t local_epoch_ = -1;
  std::int64_t epochs_ = 0;      // as NextEpoch was told last
  bool loop_ended_ = false;      // over this epoch's microbatches, as far as is known
  bool others_left_ = false;     // it early, in a step that this replica sat out
  std::int64_t divided_at_ = 0;  // the step after which the group has divided last
  EvaluationKeys evaluation_keys_;
};

}  // namespace espalier
