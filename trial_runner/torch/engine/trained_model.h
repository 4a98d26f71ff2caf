#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <string>

#include "trial_runner/collectives/collectives.h"
#include "trial_runner/elastic/scaling_rules.h"
#include "trial_runner/elastic/training_position.h"
#include "trial_runner/torch/adaptive_data_parallel.h"
#include "trial_runner/torch/engine/parts.h"
#include "trial_runner/torch/gradients/gradient_buckets.h"

namespace espalier {

// One of a trial's models with its optimizer: its part of an optimizer step. What members of a
// group must agree on is in its ModelPosition, which the engine owns; this class has what each
// member has for itself.
//
// On a device, a step of a lone replica in a single microbatch is taken without waiting for what
// its gradients turn out to be: the device leaves it out where they are not finite, and Settle()
// finds out later, before the next step. Its learning rate is of the noise until the step before.
class TrainedModel {
 public:
  // kInvalidArgument: these options or parameters cannot be trained with.
  // `bucket_operations`: does on the CPU what it does on devices, for tests, with `kernel` if that
  // is not null.
  static absl::StatusOr<std::unique_ptr<TrainedModel>> Make(
      std::unique_ptr<ModelPart> model, std::unique_ptr<OptimizerPart> optimizer,
      const DataParallelOptions& options, bool bucket_operations = false,
      GradientKernel kernel = nullptr);

  const DataParallelOptions& options() const { return options_; }
  ModelPart& model() { return *model_; }
  OptimizerPart& optimizer() { return *optimizer_; }
  std::string what() const;  // for messages: AdaptiveDataParallel "critic"
  at::Device device() const { return tensors_.front().device(); }
  int device_type() const { return static_cast<int>(device().type()); }
  int autocast_type() const;  // negative: none

  // The position of a model that has not trained.
  ModelPosition FirstPosition() const;

  // One microbatch of a step.
  struct Microbatch {
    double weight = 1;  // of its samples in the step's
    bool first = true;
    bool last = true;
  };
  // The gradients that backward brings from here to ClosePass() are the microbatch's.
  void OpenPass(const Microbatch& microbatch, const ModelPosition& position,
                Collectives& collectives, int replicas);
  void ClosePass();
  // Runs backward in between. `loss`: the mean over the microbatch.
  void Backward(const at::Tensor& loss, const Microbatch& microbatch, const ModelPosition& position,
                Collectives& collectives, int replicas);
  // A microbatch that must leave no trace: loads what steps will need. The gradients are to be
  // dropped after it.
  void Rehearse(const at::Tensor& loss, const ModelPosition& position, Collectives& collectives);
  // Ends the process where a parameter of the optimizer required no gradient when this was made,
  // and does now: it has no place among the gradients.
  void RefuseUnfrozen() const;
  // Hooks that the program has set on gradients are called with those of the step. Ends the process
  // where that cannot be.
  void DeferHooks();
  // The same where the program has set a gradient since the pass was closed.
  void RefuseSetSinceClosed() const;
  // Whether the program finds gradients, and all of them are finite.
  bool HasFiniteGradients() const;
  // Microbatches of the step so far whose loss was not finite, on this replica.
  std::int64_t non_finite_losses() const { return non_finite_losses_; }

  // The gradients stay where they are: one replica, one microbatch. Nothing is reduced.
  bool kept() const { return kept_; }
  // The program has set hooks on gradients. They are called with the sums of each backward pass, so
  // nothing of it stays where it is, and none is held for the next one.
  bool has_hooks() const { return has_hooks_; }
  // The numbers that travel with the gradients; not for kept steps.
  GradientBuckets& gradients() { return gradients_; }
  const GradientBuckets& gradients() const { return gradients_; }
  absl::Status Reduce() { return kept_ ? absl::OkStatus() : gradients_.Reduce(); }

  // What the trial knows about the step.
  struct StepFacts {
    double samples = 0;
    double batch_size = 0;     // as intended: the last step of an epoch may be shorter
    double initial_batch = 0;  // the unit of scale
    double progress = 0;
    double dataset_size = 0;
    double loss_scale = 1;  // by which the program itself had multiplied the loss of the step
  };
  // After Reduce(): measures the noise, and steps the optimizer unless the gradients are not finite
  // (then false). The same on each member. True as long as the outcome is unknown: Settle() reports
  // it.
  bool Apply(const StepFacts& facts, ModelPosition& position);
  // Accounts for the outcome of the last step, if it was unknown at its end. False: its gradients
  // were not finite, and the step was skipped. Must be called before the next Apply, and before
  // other code gets the position, the model or the optimizer.
  bool Settle(ModelPosition& position);
  // The batch size for which the learning rate is meant: the loader's first one if none was told.
  double BaseBatchSize(double initial_batch) const;
  // The learning rate of the next step, of the first parameter group.
  double LearningRate(const StepFacts& facts, const ModelPosition& position) const;

  // The next step's gradients are not to be compared with this one's.
  void DropPrevious() { gradients_.DropPrevious(); }
  // The group or its state has changed under the model. `from_device_to_device`: how its gradients
  // go, see Collectives.
  void StartGroup(bool from_device_to_device = false);
  // A collective that was given up may still write.
  void Renew() { gradients_.Renew(); }
  // What the program sees of the gradients of these, counted as gradients() has them.
  void ResetGradients(const std::vector<std::size_t>& parameters);
  // Drops all gradients. The next step makes their memory anew.
  void DropGradients();
  // Makes that memory ahead of time, while no member waits.
  void PrepareGradients() { gradients_.Prepare(); }

 private:
  TrainedModel(std::unique_ptr<ModelPart> model, std::unique_ptr<OptimizerPart> optimizer,
               const DataParallelOptions& options, std::shared_ptr<const ScalingRule> rule,
               std::vector<GradientBuckets::Parameter> parameters,
               GradientBuckets::Arithmetic arithmetic, GradientKernel kernel);

  // A step whose outcome is known to the device only.
  struct Unsettled {
    GradientBuckets::Measurement measurement;
    StepFacts facts;
    bool preconditioned = false;  // when it was measured
  };

  bool ApplyStep(const StepFacts& facts, ModelPosition& position);
  void ApplyUnsettled(const StepFacts& facts, ModelPosition& position);
  void KeepForComparison(bool comparable, double loss_scale);
  void MeasureNoise(const GradientBuckets::Norms& norms, const StepFacts& facts,
                    ModelPosition& position) const;
  void CompareNoise(const GradientBuckets::Norms& norms, const StepFacts& facts,
                    ModelPosition& position) const;
  double Factor(std::size_t group, const StepFacts& facts, const ModelPosition& position) const;
  void StepOptimizer(const StepFacts& facts, ModelPosition& position,
                     const at::Tensor& found_inf = {});
  void RefreshPreconditioners();
  void AdjustLossScale(bool finite, ModelPosition& position) const;

  const std::unique_ptr<ModelPart> model_;
  const std::unique_ptr<OptimizerPart> optimizer_;
  const DataParallelOptions options_;
  const std::shared_ptr<const ScalingRule> rule_;
  GradientBuckets gradients_;
  bool fused_ = false;  // the optimizer steps by fused kernels
  std::optional<Unsettled> unsettled_;
  std::vector<at::Tensor> tensors_;  // the parameters, in the gradients' order
  std::vector<std::size_t> groups_;  // their groups
  std::vector<NamedTensor> frozen_;  // the optimizer's that are not trained
  bool preconditioned_ = false;
  bool kept_ = false;
  bool has_hooks_ = false;
  double previous_loss_scale_ = 1;  // the program's, of the gradients that are kept for comparison
  std::int64_t non_finite_losses_ = 0;
};

}  // namespace espalier
