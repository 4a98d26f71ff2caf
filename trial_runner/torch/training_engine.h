#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trial_runner/collectives/collectives.h"
#include "trial_runner/elastic/batch_tuner.h"
#include "trial_runner/elastic/data_loader_options.h"
#include "trial_runner/elastic/microbatch_forecast.h"
#include "trial_runner/elastic/sample_order.h"
#include "trial_runner/elastic/step_profile.h"
#include "trial_runner/elastic/step_schedule.h"
#include "trial_runner/torch/adaptive_data_parallel.h"
#include "trial_runner/torch/device.h"
#include "trial_runner/torch/device_step_times.h"
#include "trial_runner/torch/libtorch_checkpoint.h"
#include "trial_runner/torch/replica_group.h"
#include "trial_runner/torch/trained_model.h"
#include "trial_runner/torch/training_state.h"
#include "trial_runner/torch/trial_context.h"

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
                              const DataParallelOptions& options);

  void SetData(std::int64_t dataset_size, const DataLoaderOptions& options);
  // See AdaptiveDataParallel.
  void Rehearse(const std::function<void()>& microbatch);
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
  void Step(std::size_t model, const at::Tensor& loss);

  // Step in parts, for programs that run backward and step their optimizers themselves.
  //
  // After BeginMicrobatch: gradients that come in from here on belong to the microbatch. When a
  // backward ends that has brought gradients of a model, they are reduced in a step's last
  // microbatch, and are the step's; those of further backward passes are added to them.
  void OpenPasses();
  // While on, what backward brings is kept for a later backward of the same microbatch, with which
  // it is reduced.
  void HoldGradients(bool on);
  enum class StepOutcome {
    kStepped,
    kSkipped,      // not finite: model and optimizer stay as they are
    kAccumulated,  // the step has more microbatches
    kDropped,      // the group was lost, and so is what this microbatch brought
  };
  // The program steps the model's optimizer: through OptimizerPart::Step, if it is to be stepped.
  StepOutcome StepModel(std::size_t model);
  // The program has come to the end of its microbatch, maybe without stepping all optimizers: what
  // it has left out is skipped.
  void EndMicrobatch();

  // For layers that compute over all samples of a step's microbatch, whichever replica has them.
  // From here on all members cut their shares into equally many microbatches.
  void AlignMicrobatches() { aligned_ = true; }
  // Whether there is a microbatch that others have a part of; also where it is to come to nothing,
  // since the group was lost in it.
  bool SumsOverStep() const;
  // The sum of these over all who have a part; bitwise the same on each. All call it alike, and go
  // on alike: where the group is lost meanwhile each gets its own back, as it does outside of
  // microbatches. `weighted`: each one's counts by the weight of its samples in the step, as its
  // gradients do, and the sum is in proportion to that of this replica's.
  at::Tensor SumOverStep(const at::Tensor& own, bool weighted);

  std::vector<double> Evaluate(std::int64_t size, std::int64_t batch_size, std::size_t sums,
                               const SumOver& sum_over);

  // For Accumulator; they are defined in its source. A sum is known by its index.
  std::size_t AddAccumulator(const std::string& name, const std::vector<std::string>& sums);
  void Accumulate(std::size_t index, double value) { state_.sums.Add(index, value); }
  std::int64_t accumulators() const { return accumulators_; }  // how many there are
  // `accumulator`: its number, from 1. Its sums are `count`, from `begin` on.
  std::vector<double> SynchronizeSums(std::int64_t accumulator, std::size_t begin,
                                      std::size_t count);

  // Beside accumulators: sums of a program that are not numbers with fixed names. Each replica's
  // own part is brought together wherever accumulators are merged.
  class ProgramSums {
   public:
    virtual ~ProgramSums() = default;
    virtual bool empty() const = 0;
    // Empty: this replica has added nothing since the last merge.
    virtual std::string Own() const = 0;
    // What each member brought, by rank; its own part is then merged.
    virtual absl::Status Merge(const std::vector<std::string>& parts) = 0;
  };
  void SetProgramSums(std::unique_ptr<ProgramSums> sums) { program_sums_ = std::move(sums); }

  // An evaluation that the program computes itself, or a place where sums are merged: all replicas
  // come to it, and it has a key.
  EvaluationKey BeginEvaluation();
  enum class EvaluationState {
    kToDo,
    kDone,  // its result has come from other replicas, or has been merged here
    kPast,  // the group has long gone on
  };
  EvaluationState StateOf(const EvaluationKey& key) const;
  // Merges all sums; those of the program's are then the evaluation's result. `accumulator`: whose
  // sums the program asks for, from 1; 0: an evaluation. False if the group was lost, and another
  // has formed: StateOf tells what is to be done now.
  bool MergeEvaluation(const EvaluationKey& key, std::int64_t accumulator);

  const TrainingPosition& position() const { return state_.position; }
  const ReplicaGroup& group() const { return group_; }
  std::int64_t generation() const { return trial_.generation; }
  const TrainedModel& model(std::size_t number) const { return *models_[number]; }
  std::uint64_t seed() const { return trial_.seed; }
  // What one step of the present batch size is worth in steps of the initial one.
  double CurrentGain() const;
  bool InLastMicrobatch() const { return next_microbatch_ + 1 == plan_->microbatches.size(); }
  // Of the present step, on this replica.
  std::int64_t Microbatches() const { return plan_ ? std::ssize(plan_->microbatches) : 0; }
  double BaseBatchSize(std::size_t model) const {
    return models_[model]->BaseBatchSize(static_cast<double>(bounds_.initial));
  }
  // The indices of a slice's samples, into as many places.
  void CopySamples(std::int64_t epoch, const SampleSlice& slice, std::int64_t* samples);

 private:
  void Join(std::int64_t epochs);
  void PlanNextStep();
  void BackwardOfRehearsal(std::size_t number, const at::Tensor& loss);
  std::size_t AddModel(std::unique_ptr<ModelPart> model, std::unique_ptr<OptimizerPart> optimizer,
                       const DataParallelOptions& options);
  // Whether gradients of the model count now: not if it has made this step in a former group.
  bool Collects(std::size_t model) const;
  void EndBackward(std::size_t model);
  void BeginFurtherBackward(std::size_t model);
  void ReduceHeld(std::size_t model);
  bool AgreeWithoutModels();
  void EndOfMicrobatch();
  bool FinishModel(std::size_t number);
  bool ReduceModel(std::size_t number);
  void ApplyModel(std::size_t number);
  void FillTail(TrainedModel& model);
  void TakeProposal(const TrainedModel& model);
  void FinishStep();
  void SettleSteps();
  void MeasureTimes();
  void FailAfterSkippedSteps(const TrainedModel& model, const ModelPosition& position);
  TrainedModel::StepFacts Facts() const;
  double ComputeTime() const;
  void SendProgress();
  void ProposeBatch(const ReplicaProgress& message);
  bool Divide();
  void ComeTogether(bool in_loop);
  // Leaves the present group, which is broken or which all members leave together, and returns in
  // the next one; what was begun is dropped.
  void Regroup(bool broken);
  // Leaves it together with all others, if a step has found that all know of a newer one. Programs
  // do what belongs to a step before they come here, such as stepping a schedule.
  void RegroupIfDue();
  // Not in the loop over an epoch's microbatches, nor where it was left early: others would go on
  // with the next one.
  void RegroupBeforeEvaluation();
  bool InMidEpoch() const;
  // Of gradients, and of the device what LibTorch keeps.
  void ReleaseMemory();
  absl::Status EvaluateShare(std::int64_t size, std::int64_t batch_size, const SumOver& sum_over,
                             std::vector<double>& sums, bool& pending);
  absl::Status ShareBuffers();
  EvaluationKey NextEvaluationKey();
  static ProgramPlace PlaceOf(const EvaluationKey& key, std::int64_t accumulator = 0);
  void FinishEpoch();
  // Merges what each replica has added to accumulators into the sums that all share.
  absl::Status MergeSums(bool& all_know);
  absl::Status GatherProgramSums(const std::string& own, std::span<const double> sizes);
  std::int64_t MaxUnsplit() const;
  std::int64_t MaxAtomic() const;

  TrialContext& trial_;
  const std::unique_ptr<CheckpointFormat> format_;
  std::unique_ptr<Collectives> collectives_;
  TrainingState state_;
  ReplicaGroup group_;
  std::vector<std::unique_ptr<TrainedModel>> models_;

  // Set by the loader.
  BatchBounds bounds_;
  std::optional<SampleOrder> order_;
  std::optional<BatchTuner> tuner_;

  // The step under way.
  std::optional<StepPlan> plan_;
  std::size_t next_microbatch_ = 0;
  std::size_t next_model_ = 0;  // whose Step is due for this microbatch
  bool answer_due_ = false;     // BeginMicrobatch was called, a Step is still due
  bool dropped_ = false;        // the group was lost: what this microbatch still brings is ignored
  bool rehearsing_ = false;     // what a microbatch brings is to leave no trace
  bool all_know_ = false;       // that a newer generation is announced
  bool regroup_due_ = false;    // the last step has found that all know
  bool skipped_ = false;        // some model's gradients were not finite
  bool broken_ = false;         // the group was lost in a pass, and is still to be left
  // Of each model, what its pass of this microbatch has come to; for programs that step themselves.
  enum class PassState { kOpen, kHeld, kClosed };
  std::vector<PassState> passes_;
  bool hold_gradients_ = false;
  bool aligned_ = false;
  double inverse_size_ = 0;
  MeasuredStepTimes times_;
  double compute_time_s_ = 0;  // of the step, up to microbatch_start_
  Clock::time_point microbatch_start_;

  // Where the program is, which may lag behind the position after a regroup.
  std::int64_t local_epoch_ = -1;
  std::int64_t epochs_ = 0;      // as NextEpoch was told last
  bool loop_ended_ = false;      // over this epoch's microbatches, as far as is known
  bool others_left_ = false;     // it early, in a step that this replica sat out
  std::int64_t divided_at_ = 0;  // the step after which the group has divided last
  EvaluationKey next_evaluation_;
  std::int64_t accumulators_ = 0;          // that it has made
  bool trained_since_evaluation_ = false;  // its program took a batch

  // Only for devices: the host's clock does not see what they do.
  std::optional<DeviceStepTimes> device_times_;
  DeviceStepTimes::Step device_step_;  // the newest that the device is through with

  std::unique_ptr<ProgramSums> program_sums_;

  StepProfile profile_;
  std::vector<ReplicaTime> replica_times_;  // by rank, since they were last sent
  double trained_samples_ = 0;              // since the last progress
  double last_gain_ = 0;                    // what the last step that was taken added to progress
  Clock::time_point last_step_end_ = Clock::now();
  Clock::time_point last_progress_ = Clock::now();
  std::int64_t proposed_batch_ = 0;  // rank 0's, until a step carried it
  std::int64_t proposed_atomic_ = 0;
};

}  // namespace espalier
