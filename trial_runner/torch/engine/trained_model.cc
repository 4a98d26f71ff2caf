#include "trial_runner/torch/engine/trained_model.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones_like.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status.h"
#include "trial_runner/torch/gradients/preconditioner.h"
#include "trial_runner/torch/process/device.h"
#include "trial_runner/torch/process/trial_context.h"

namespace espalier {
namespace {

// Loss scaling as in Micikevicius et al. (2018), with the constants that have become usual.
constexpr double kFirstLossScale = 65536;
constexpr double kLeastLossScale = 1.0 / 65536;
constexpr std::int64_t kStepsToGrow = 2000;

// By sockets small buckets are under way early; NCCL's start costs more, and large ones go faster.
// The first is to be under way early in any case.
constexpr std::int64_t kHostBucket_bytes = 4 << 20;
constexpr std::int64_t kDeviceBucket_bytes = 25 << 20;
constexpr std::int64_t kFirstDeviceBucket_bytes = 1 << 20;

// What a model calls its parameters.
class NamesOfTensors {
 public:
  explicit NamesOfTensors(const ModelPart& model) {
    for (const NamedTensor& p : model.Parameters()) {
      names_.emplace(p.tensor.unsafeGetTensorImpl(), p.name);
    }
  }
  std::string Of(const at::Tensor& tensor) const {
    const auto found = names_.find(tensor.unsafeGetTensorImpl());
    return found == names_.end() ? std::string() : found->second;
  }

 private:
  std::map<const void*, std::string> names_;
};

absl::StatusOr<std::vector<GradientBuckets::Parameter>> TrainedParameters(
    const ModelPart& model, const std::vector<std::vector<at::Tensor>>& groups,
    const std::string& what) {
  const NamesOfTensors names(model);
  std::vector<GradientBuckets::Parameter> trained;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const at::Tensor& p : groups[g]) {
      if (!p.requires_grad()) continue;
      const bool sums_in_float = p.scalar_type() == at::kFloat ||
                                 p.scalar_type() == at::kBFloat16 || p.scalar_type() == at::kHalf;
      if (!sums_in_float || p.layout() != at::kStrided) {
        return absl::InvalidArgumentError(absl::StrCat(what, ": a parameter is ", p.toString(),
                                                       ": want dense float, bfloat16 or half"));
      }
      if (!trained.empty() && p.device() != trained.front().tensor.device()) {
        return absl::InvalidArgumentError(
            absl::StrCat(what, ": its parameters are on ", trained.front().tensor.device().str(),
                         " and ", p.device().str(), ": want one device"));
      }
      trained.push_back({p, g, names.Of(p)});
    }
  }
  if (trained.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": the optimizer has no parameters to train"));
  }
  return trained;
}

std::string NameOf(const DataParallelOptions& options) {
  return options.name.empty() ? "AdaptiveDataParallel"
                              : absl::StrCat("AdaptiveDataParallel \"", options.name, "\"");
}

absl::Status Check(const DataParallelOptions& options) {
  const std::string what = NameOf(options);
  if (options.base_batch_size < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, ": base_batch_size is ", options.base_batch_size, ": want a positive number"));
  }
  if (!(options.max_gradient_norm >= 0) || !std::isfinite(options.max_gradient_norm)) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": max_gradient_norm is ",
                                                   options.max_gradient_norm,
                                                   ": want 0 (no limit) or a positive number"));
  }
  if (!options.mixed_precision.empty() && options.mixed_precision != "bf16" &&
      options.mixed_precision != "fp16") {
    return absl::InvalidArgumentError(absl::StrCat(what, ": mixed_precision is \"",
                                                   options.mixed_precision,
                                                   "\": want bf16, fp16 or nothing"));
  }
  if (options.bucket_bytes < 0) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": bucket_bytes is ", options.bucket_bytes,
                                                   ": want a positive number, or 0: as suits"));
  }
  return absl::OkStatus();
}

// The last step of an epoch may be shorter: not to be compared with the others.
bool IsComparable(const TrainedModel::StepFacts& facts) {
  return facts.samples == facts.batch_size;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TrainedModel>> TrainedModel::Make(
    std::unique_ptr<ModelPart> model, std::unique_ptr<OptimizerPart> optimizer,
    const DataParallelOptions& options, bool bucket_operations, GradientKernel kernel) {
  ESPALIER_RETURN_IF_ERROR(Check(options));
  std::shared_ptr<const ScalingRule> rule = options.rule;
  if (!rule) {
    const char* usual = optimizer->IsAdam() ? "adamscale" : "adascale";
    ESPALIER_ASSIGN_OR_RETURN(
        rule, FindScalingRule(options.scaling_rule.empty() ? usual : options.scaling_rule));
  }
  ESPALIER_ASSIGN_OR_RETURN(auto parameters,
                            TrainedParameters(*model, optimizer->Groups(), NameOf(options)));
  using Arithmetic = GradientBuckets::Arithmetic;
  const at::Device device = parameters.front().tensor.device();
  const Arithmetic arithmetic =
      bucket_operations ? Arithmetic::kBucketOperations : GradientBuckets::UsualFor(device);
  return std::unique_ptr<TrainedModel>(new TrainedModel(
      std::move(model), std::move(optimizer), options, std::move(rule), std::move(parameters),
      arithmetic, bucket_operations ? kernel : GradientKernelFor(device)));
}

TrainedModel::TrainedModel(std::unique_ptr<ModelPart> model,
                           std::unique_ptr<OptimizerPart> optimizer,
                           const DataParallelOptions& options,
                           std::shared_ptr<const ScalingRule> rule,
                           std::vector<GradientBuckets::Parameter> parameters,
                           GradientBuckets::Arithmetic arithmetic, GradientKernel kernel)
    : model_(std::move(model)),
      optimizer_(std::move(optimizer)),
      options_(options),
      rule_(std::move(rule)),
      gradients_(std::move(parameters), optimizer_->Groups().size(),
                 options.bucket_bytes > 0 ? options.bucket_bytes : kHostBucket_bytes, arithmetic,
                 kernel),
      fused_(arithmetic != GradientBuckets::Arithmetic::kHostLoops &&
             optimizer_->UseFusedKernels()) {
  for (const GradientBuckets::Parameter& p : gradients_.parameters()) {
    tensors_.push_back(p.tensor);
    groups_.push_back(p.group);
  }
  const NamesOfTensors names(*model_);
  for (const std::vector<at::Tensor>& group : optimizer_->Groups()) {
    for (const at::Tensor& p : group) {
      if (!p.requires_grad()) frozen_.push_back({names.Of(p), p});
    }
  }
}

void TrainedModel::RefuseUnfrozen() const {
  for (const NamedTensor& p : frozen_) {
    if (!p.tensor.requires_grad()) continue;
    BadUse(absl::StrCat(
        what(), ": parameter \"", p.name,
        "\" required no gradient when the model was wrapped, and does now: replicas have no place "
        "for its gradient. Want it to require one when the model is wrapped; what is to be trained "
        "later is frozen after that, and may then change as it likes"));
  }
}

void TrainedModel::DeferHooks() {
  if (!gradients_.HasNewHooks()) return;
  if (const auto name = model_->DeferHooks()) {
    BadUse(absl::StrCat(what(), ": parameter \"", *name,
                        "\" has a hook by register_hook, which is called with the gradient of this "
                        "replica's part of a step: want what it does done to the loss, or by "
                        "max_gradient_norm"));
  }
  has_hooks_ = true;
  gradients_.AtSum([this] { model_->CallHooks(); });
}

void TrainedModel::RefuseSetSinceClosed() const {
  const GradientBuckets::Parameter* p = gradients_.SetSinceEnd();
  if (p == nullptr) return;
  BadUse(absl::StrCat(
      what(), ": the gradient of parameter \"", p->name,
      "\" was set after backward(), where the other replicas' would not be in it. Want all of the "
      "batch's gradients set by the program, before the step and without backward(), or all by "
      "backward()"));
}

bool TrainedModel::HasFiniteGradients() const {
  const at::NoGradGuard no_grad;
  bool any = false;
  for (const at::Tensor& parameter : tensors_) {
    const at::Tensor& gradient = parameter.grad();
    if (!gradient.defined()) continue;
    if (!gradient.isfinite().all().item<bool>()) return false;
    any = true;
  }
  return any;
}

std::string TrainedModel::what() const { return NameOf(options_); }

int TrainedModel::autocast_type() const {
  if (options_.mixed_precision == "bf16") return static_cast<int>(at::kBFloat16);
  if (options_.mixed_precision == "fp16") return static_cast<int>(at::kHalf);
  return -1;
}

ModelPosition TrainedModel::FirstPosition() const {
  ModelPosition position;
  position.noise.resize(gradients_.groups());
  position.loss_scale = options_.mixed_precision == "fp16" ? kFirstLossScale : 0;
  return position;
}

// ---- gradients ----------------------------------------------------------------------------------

namespace {

double LossScale(const ModelPosition& position) {
  return position.loss_scale > 0 ? position.loss_scale : 1.0;
}

}  // namespace

void TrainedModel::OpenPass(const Microbatch& microbatch, const ModelPosition& position,
                            Collectives& collectives, int replicas) {
  const double scale = LossScale(position);
  // With a loss scale, what the gradients turn out to be is to be known at once, so that it
  // follows.
  kept_ = replicas == 1 && microbatch.first && microbatch.last && position.loss_scale <= 0 &&
          !has_hooks_;
  if (microbatch.first) non_finite_losses_ = 0;
  gradients_.Begin({.weight = microbatch.weight / scale,
                    .first = microbatch.first,
                    .last = microbatch.last,
                    .keep = kept_,
                    .norm_factor = 1 / (scale * scale)},
                   collectives, replicas);
}

void TrainedModel::ClosePass() {
  gradients_.End();
  // By fused kernels nobody comes between backward and the step.
  if (kept_ && !fused_) gradients_.MeasureKept();
}

void TrainedModel::Backward(const at::Tensor& loss, const Microbatch& microbatch,
                            const ModelPosition& position, Collectives& collectives, int replicas) {
  OpenPass(microbatch, position, collectives, replicas);
  // On a device the gradients tell as much, without waiting for it.
  if (loss.device().is_cpu() && !std::isfinite(loss.item<double>())) ++non_finite_losses_;
  const double scale = LossScale(position);
  if (scale == 1.0) {
    loss.backward();
  } else {
    (loss * scale).backward();
  }
  ClosePass();
}

void TrainedModel::Rehearse(const at::Tensor& loss, const ModelPosition& position,
                            Collectives& collectives) {
  // A kept pass begins no collective, nor does the first microbatch of several, which is folded.
  const bool keep = fused_ && position.loss_scale <= 0;
  Backward(loss, {.weight = 1, .first = true, .last = keep}, position, collectives, 1);
  if (!keep) return;
  const GradientBuckets::Measurement measurement = gradients_.BeginMeasuring(/*previous=*/false);
  gradients_.Await(measurement);
  // The device leaves the step out.
  const std::vector<double> factors(gradients_.groups(), 1.0);
  optimizer_->Step(factors, at::ones_like(gradients_.FoundNotFinite(measurement)));
  optimizer_->TakeBack();
}

void TrainedModel::RefreshPreconditioners() {
  auto fresh = optimizer_->Preconditioners(tensors_, groups_);
  preconditioned_ = !fresh.empty();
  gradients_.SetPreconditioners(std::move(fresh));
}

void TrainedModel::StartGroup(bool from_device_to_device) {
  if (options_.bucket_bytes == 0) {
    from_device_to_device ? gradients_.SetBucketBytes(kFirstDeviceBucket_bytes, kDeviceBucket_bytes)
                          : gradients_.SetBucketBytes(kHostBucket_bytes, kHostBucket_bytes);
  }
  gradients_.Attach();
  gradients_.DropPrevious();
  optimizer_->StartGroup();
  RefreshPreconditioners();
}

// ---- the step -----------------------------------------------------------------------------------

void TrainedModel::MeasureNoise(const GradientBuckets::Norms& norms, const StepFacts& facts,
                                ModelPosition& position) const {
  const double microbatches = gradients_.tail(GradientBuckets::kMicrobatches);
  const std::vector<double> local = gradients_.LocalSqr();
  const double unscale = 1 / (facts.loss_scale * facts.loss_scale);
  for (std::size_t g = 0; g < position.noise.size(); ++g) {
    const auto seen = EstimateNoise(
        {.local_sqr_mean = local[g] * unscale / microbatches,
         .inverse_mean = gradients_.tail(GradientBuckets::kInverseSize) / microbatches,
         .total_sqr = norms.sqr[g],
         .samples = facts.samples});
    if (seen) position.noise[g].Add(*seen, facts.samples / facts.initial_batch, /*biased=*/false);
  }
}

// Of a step of one microbatch, beside the step before.
void TrainedModel::CompareNoise(const GradientBuckets::Norms& norms, const StepFacts& facts,
                                ModelPosition& position) const {
  if (norms.product.empty()) return;
  for (std::size_t g = 0; g < position.noise.size(); ++g) {
    const auto seen = EstimateNoiseFromPrevious(norms.sqr[g], norms.previous_sqr[g],
                                                norms.product[g], facts.samples);
    if (seen) position.noise[g].Add(*seen, 2 * facts.samples / facts.initial_batch, true);
  }
}

double TrainedModel::BaseBatchSize(double initial_batch) const {
  return options_.base_batch_size > 0 ? static_cast<double>(options_.base_batch_size)
                                      : initial_batch;
}

double TrainedModel::Factor(std::size_t group, const StepFacts& facts,
                            const ModelPosition& position) const {
  const double base = BaseBatchSize(facts.initial_batch);
  const NoiseAverages& noise = position.noise[group];
  // By the batch size that is meant, also in the shorter step at an epoch's end.
  return rule_->Factor({.group = static_cast<std::int64_t>(group),
                        .scale = facts.batch_size / base,
                        .sqr = noise.Sqr(),
                        .var = noise.Var(base),
                        .progress = facts.progress,
                        .base_batch_size = base,
                        .dataset_size = facts.dataset_size});
}

double TrainedModel::LearningRate(const StepFacts& facts, const ModelPosition& position) const {
  return optimizer_->Rate(0) * Factor(0, facts, position);
}

void TrainedModel::StepOptimizer(const StepFacts& facts, ModelPosition& position,
                                 const at::Tensor& found_inf) {
  std::vector<double> factors;
  for (std::size_t g = 0; g < gradients_.groups(); ++g) {
    factors.push_back(Factor(g, facts, position));
  }
  optimizer_->Step(factors, found_inf);
  const bool preconditioned = preconditioned_;
  RefreshPreconditioners();
  // Norms of scaled and unscaled gradients have nothing to do with one another.
  if (preconditioned != preconditioned_) {
    for (NoiseAverages& averages : position.noise) averages = {};
  }
}

void TrainedModel::AdjustLossScale(bool finite, ModelPosition& position) const {
  if (position.loss_scale <= 0) return;
  if (!finite) {
    position.loss_scale = std::max(position.loss_scale / 2, kLeastLossScale);
    position.good_steps = 0;
  } else if (++position.good_steps == kStepsToGrow) {
    position.loss_scale *= 2;
    position.good_steps = 0;
  }
}

void TrainedModel::ResetGradients(const std::vector<std::size_t>& parameters) {
  for (const std::size_t i : parameters) tensors_[i].mutable_grad().reset();
}

void TrainedModel::DropGradients() {
  gradients_.Renew();
  for (at::Tensor& parameter : tensors_) parameter.mutable_grad().reset();
}

bool TrainedModel::Apply(const StepFacts& facts, ModelPosition& position) {
  ESPALIER_CHECK(!unsettled_, "the step before is not settled");
  bool stepped = true;
  if (kept_ && fused_) {
    ApplyUnsettled(facts, position);
  } else {
    stepped = ApplyStep(facts, position);
  }
  // Another model's backward may come through this one, and is not to add to what is kept.
  for (at::Tensor& parameter : tensors_) parameter.mutable_grad().reset();
  return stepped;
}

void TrainedModel::KeepForComparison(bool comparable, double loss_scale) {
  previous_loss_scale_ = loss_scale;
  if (loss_scale != 1 && !gradients_.KeepCopies()) comparable = false;
  if (comparable) {
    gradients_.KeepAsPrevious();
  } else {
    gradients_.DropPrevious();
  }
}

void TrainedModel::ApplyUnsettled(const StepFacts& facts, ModelPosition& position) {
  const bool comparable = IsComparable(facts);
  unsettled_ = {.measurement = gradients_.BeginMeasuring(comparable),
                .facts = facts,
                .preconditioned = preconditioned_};
  KeepForComparison(comparable, facts.loss_scale);
  if (options_.max_gradient_norm > 0) {
    gradients_.Clip(unsettled_->measurement, options_.max_gradient_norm);
  }
  StepOptimizer(facts, position, gradients_.FoundNotFinite(unsettled_->measurement));
}

bool TrainedModel::Settle(ModelPosition& position) {
  if (!unsettled_) return true;
  const Unsettled step = *std::exchange(unsettled_, std::nullopt);
  const GradientBuckets::Norms norms = gradients_.Await(step.measurement);
  if (!norms.finite()) {
    optimizer_->TakeBack();
    RefreshPreconditioners();  // by the count of steps that were taken
    gradients_.DropPrevious();
    ++position.skipped_steps;
    return false;
  }
  position.skipped_steps = 0;
  if (step.preconditioned == preconditioned_) CompareNoise(norms, step.facts, position);
  return true;
}

bool TrainedModel::ApplyStep(const StepFacts& facts, ModelPosition& position) {
  const bool comparable = IsComparable(facts);
  const bool alone = kept_ || gradients_.tail(GradientBuckets::kMicrobatches) < 1.5;
  GradientBuckets::Norms norms = gradients_.MeasureStep(alone && comparable);
  const bool finite =
      norms.finite() &&
      (kept_ ? non_finite_losses_ == 0 : gradients_.tail(GradientBuckets::kNonFiniteLoss) == 0);
  // While the loss scale is larger than it has to be, gradients that overflow are its fault.
  const bool expected = !finite && position.loss_scale > 1;
  AdjustLossScale(finite, position);
  if (!finite) {
    gradients_.DropPrevious();
    if (!expected) ++position.skipped_steps;
    return false;
  }
  position.skipped_steps = 0;
  norms.Unscale(facts.loss_scale, previous_loss_scale_);
  if (alone) {
    CompareNoise(norms, facts, position);
  } else if (!gradients_.in_parts()) {
    MeasureNoise(norms, facts, position);
  }
  KeepForComparison(alone && comparable && !gradients_.in_parts(), facts.loss_scale);
  if (options_.max_gradient_norm > 0) {
    const double norm = gradients_.Norm();
    if (norm > options_.max_gradient_norm) gradients_.Scale(options_.max_gradient_norm / norm);
  }
  StepOptimizer(facts, position);
  return true;
}

}  // namespace espalier
