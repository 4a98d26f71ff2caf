#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
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
  explicit TrainingEngine(TrialContext& trial);

  // Returns the model's number, from 0.
  std::size_t AddModel(torch::nn::Module& model, torch::optim::Optimizer& optimizer,
                       const DataParallelOptions& options);

  void SetData(std::int64_t dataset_size, const DataLoaderOptions& options);
  // See AdaptiveDataParallel.
  void Rehearse(const std::function<void()>& microbatch);
  bool NextEpoch(std::int64_t epochs);
  std::int64_t epoch() const { return local_epoch_ + 1; }
  // This replica's next microbatch, the same until BeginMicrobatch; nothing when the epoch is over.
  std::optional<SampleSlice> NextMicrobatch();
  // What will follow if nothing changes, from the microbatch on that NextMicrobatch returned.
  MicrobatchForecast Forecast() const;
  // The microbatch's samples are at hand: the time that it takes counts from here, and Step has to
  // follow.
  void BeginMicrobatch();
  // Both of these in one, as indices.
  std::optional<at::Tensor> NextBatch();
  void Step(std::size_t model, const at::Tensor& loss);
  std::vector<double> Evaluate(std::int64_t size, std::int64_t batch_size, std::size_t sums,
                               const SumOver& sum_over);

  // For Accumulator; they are defined in its source. A sum is known by its index.
  std::size_t AddAccumulator(const std::string& name, const std::vector<std::string>& sums);
  void Accumulate(std::size_t index, double value) { state_.sums.Add(index, value); }
  std::vector<double> SynchronizeSums(std::size_t begin, std::size_t count);

  const TrainingPosition& position() const { return state_.position; }
  const ReplicaGroup& group() const { return group_; }
  std::int64_t generation() const { return trial_.generation; }
  const TrainedModel& model(std::size_t number) const { return *models_[number]; }
  std::uint64_t seed() const { return trial_.seed; }

 private:
  void Join(std::int64_t epochs);
  void PlanNextStep();
  void BackwardOfRehearsal(std::size_t number, const at::Tensor& loss);
  void StepWithoutSamples();
  bool FinishModel(std::size_t number);
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
  // Leaves the present group, which is broken or which all members leave together, and returns in
  // the next one; what was begun is dropped.
  void Regroup(bool broken);
  // Of gradients, and of the device what LibTorch keeps.
  void ReleaseMemory();
  absl::Status EvaluateShare(std::int64_t size, std::int64_t batch_size, const SumOver& sum_over,
                             std::vector<double>& sums, bool& pending);
  absl::Status ShareBuffers();
  EvaluationKey NextEvaluationKey();
  void FinishEpoch();
  // Merges what each replica has added to accumulators into the sums that all share.
  absl::Status MergeSums(bool& all_know);
  std::int64_t MaxUnsplit() const;
  std::int64_t MaxAtomic() const;

  TrialContext& trial_;
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
  bool skipped_ = false;        // some model's gradients were not finite
  double inverse_size_ = 0;
  MeasuredStepTimes times_;
  double compute_time_s_ = 0;  // of the step, up to microbatch_start_
  Clock::time_point microbatch_start_;

  // Where the program is, which may lag behind the position after a regroup.
  std::int64_t local_epoch_ = -1;
  std::int64_t epochs_ = 0;  // as NextEpoch was told last
  EvaluationKey next_evaluation_;
  bool trained_since_evaluation_ = false;  // its program took a batch

  // Only for devices: the host's clock does not see what they do.
  std::unique_ptr<StepTimer> device_timer_;
  StepTimer::Times device_times_;  // of the newest step that the device is through with

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
