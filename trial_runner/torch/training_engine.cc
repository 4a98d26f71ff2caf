#include "trial_runner/torch/training_engine.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <torch/nn/module.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/optimizer.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "trial_runner/collectives/gloo_collectives.h"
#include "trial_runner/elastic/batch_bounds.h"
#include "trial_runner/torch/preconditioner.h"
#include "tuner/base/check.h"
#include "tuner/base/random.h"
#include "tuner/base/status.h"

namespace espalier {
namespace {

constexpr double kProgressPeriod_s = 1.0;

using Clock = TrainingEngine::Clock;

double SecondsBetween(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

[[noreturn]] void BadUse(const std::string& message) {
  EndProcess(absl::InvalidArgumentError(message), kBadUseExitCode);
}

ScalingRule RuleFor(const std::string& name, torch::optim::Optimizer& optimizer) {
  const bool adam = dynamic_cast<torch::optim::Adam*>(&optimizer) != nullptr ||
                    dynamic_cast<torch::optim::AdamW*>(&optimizer) != nullptr;
  const absl::StatusOr<ScalingRule> rule = FindScalingRule(!name.empty() ? name
                                                           : adam        ? "adamscale"
                                                                         : "adascale");
  if (!rule.ok()) EndProcess(rule.status(), kBadUseExitCode);
  return *rule;
}

std::unique_ptr<Collectives> MakeCollectives(const TrialContext& trial) {
  auto made = MakeGlooCollectives({.host = trial.host, .interface = trial.interface});
  if (!made.ok()) EndProcess(made.status(), kBadUseExitCode);
  return *std::move(made);
}

std::vector<at::Tensor> TrainedParameters(torch::optim::Optimizer& optimizer) {
  std::vector<at::Tensor> trained;
  for (const auto& group : optimizer.param_groups()) {
    for (const at::Tensor& p : group.params()) {
      if (!p.requires_grad()) continue;
      if (p.scalar_type() != at::kFloat || !p.device().is_cpu()) {
        BadUse(absl::StrCat("AdaptiveDataParallel: a parameter is ", p.toString(),
                            ": want CPUFloatType"));
      }
      trained.push_back(p);
    }
  }
  if (trained.empty()) BadUse("AdaptiveDataParallel: the optimizer has no parameters to train");
  return trained;
}

at::Tensor IndexTensor(std::span<const std::int64_t> indices) {
  at::Tensor tensor = at::empty({static_cast<std::int64_t>(indices.size())}, at::kLong);
  std::copy(indices.begin(), indices.end(), tensor.mutable_data_ptr<std::int64_t>());
  return tensor;
}

at::Tensor IndexRange(const SampleSlice& slice) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(slice.size));
  for (std::size_t i = 0; i < indices.size(); ++i) {
    indices[i] = slice.begin + static_cast<std::int64_t>(i);
  }
  return IndexTensor(indices);
}

}  // namespace

TrainingEngine::TrainingEngine(TrialContext& trial, torch::nn::Module& model,
                               torch::optim::Optimizer& optimizer, DataParallelOptions options)
    : trial_(trial),
      model_(model),
      optimizer_(optimizer),
      rule_(RuleFor(options.scaling_rule, optimizer)),
      base_batch_size_(options.base_batch_size),
      collectives_(MakeCollectives(trial)),
      state_(trial),
      group_(trial, *collectives_, state_),
      gradients_(TrainedParameters(optimizer)) {
  if (base_batch_size_ < 0) {
    BadUse(absl::StrCat("base_batch_size is ", base_batch_size_, ": want a positive number"));
  }
  const absl::Status added = state_.AddModel("", model, optimizer);
  if (!added.ok()) EndProcess(added, kBadUseExitCode);
}

void TrainingEngine::SetData(std::int64_t dataset_size, const DataLoaderOptions& options) {
  if (group_.joined()) BadUse("the data and its batch size are set before the first NextEpoch");
  const absl::StatusOr<BatchBounds> bounds = BoundsOf(options, dataset_size, trial_.adaptive_batch);
  if (!bounds.ok()) EndProcess(bounds.status(), kBadUseExitCode);
  bounds_ = *bounds;
  if (base_batch_size_ == 0) base_batch_size_ = options.batch_size;
  order_.emplace(dataset_size, trial_.seed);
  if (trial_.adaptive_batch) tuner_.emplace(bounds_);
}

// ---- epochs and microbatches ------------------------------------------------------------------

void TrainingEngine::Join(std::int64_t epochs) {
  if (!order_) BadUse("AdaptiveDataParallel: make an AdaptiveDataLoader first");
  if (!trial_.checkpoint.empty()) {
    const absl::Status loaded = state_.LoadNewestCheckpoint();
    if (!loaded.ok()) EndProcess(loaded, 1);
  }
  // LibTorch's serialization takes its time the first time: better now than while others wait.
  const absl::Status warmed = state_.WarmUp();
  if (!warmed.ok()) EndProcess(warmed, 1);
  group_.Join({.address = "", .bounds = bounds_, .total_steps = epochs});
  if (!trial_.adaptive_batch || state_.position.batch_size == 0) {
    state_.position.batch_size = bounds_.initial;
  }
  state_.position.atomic_batch_size = 0;  // as Regroup does in those that were there before
  ScaleNorms();
  trial_.progress = state_.position.progress;
  last_step_end_ = Clock::now();
}

bool TrainingEngine::NextEpoch(std::int64_t epochs) {
  if (answer_due_) BadUse("NextEpoch was called where Step was due");
  TrainingPosition& p = state_.position;
  epochs_ = epochs;
  if (!group_.joined()) {
    Join(epochs);
  } else if (p.epoch == local_epoch_) {
    ++p.epoch;
    p.cursor = 0;
    if (group_.rank() == 0) state_.SaveCheckpoint();
  }
  local_epoch_ = p.epoch;
  plan_.reset();
  return local_epoch_ < epochs;
}

std::int64_t TrainingEngine::MaxAtomic() const {
  const std::int64_t chosen = state_.position.atomic_batch_size;
  return chosen > 0 ? chosen : bounds_.max_atomic;
}

void TrainingEngine::PlanNextStep() {
  const TrainingPosition& p = state_.position;
  plan_ =
      PlanStep(p.cursor, order_->size(), p.batch_size, group_.rank(), group_.size(), MaxAtomic());
  next_microbatch_ = 0;
  local_sqr_ = inverse_size_ = 0;
  times_ = {};
  microbatch_start_ = Clock::now();
  // Dropout and the like draw differently in each step and replica, and the same again if the step
  // has to be repeated.
  at::manual_seed(MixSeed(MixSeed(trial_.seed, static_cast<std::uint64_t>(p.step)),
                          static_cast<std::uint64_t>(group_.rank())));
}

std::optional<SampleSlice> TrainingEngine::NextMicrobatch() {
  if (answer_due_) BadUse("NextBatch was called again where Step was due");
  if (local_epoch_ < 0) BadUse("NextBatch was called before NextEpoch");
  const TrainingPosition& p = state_.position;
  while (p.epoch == local_epoch_ && p.cursor < order_->size()) {
    if (!plan_) PlanNextStep();
    if (plan_->microbatches.empty()) {  // fewer samples left than replicas
      gradients_.PrepareBackward();
      FinishStep();
      continue;
    }
    return plan_->microbatches[next_microbatch_];
  }
  return std::nullopt;
}

MicrobatchForecast TrainingEngine::Forecast() const {
  const TrainingPosition& p = state_.position;
  return MicrobatchForecast({.epoch = local_epoch_,
                             .epochs = epochs_,
                             .cursor = p.cursor,
                             .microbatch = next_microbatch_,
                             .epoch_size = order_->size(),
                             .batch_size = p.batch_size,
                             .rank = group_.rank(),
                             .replicas = group_.size(),
                             .max_atomic = MaxAtomic()});
}

void TrainingEngine::BeginMicrobatch() {
  microbatch_start_ = Clock::now();
  answer_due_ = true;
}

std::optional<at::Tensor> TrainingEngine::NextBatch() {
  const std::optional<SampleSlice> microbatch = NextMicrobatch();
  if (!microbatch) return std::nullopt;
  BeginMicrobatch();
  return IndexTensor(order_->Slice(local_epoch_, *microbatch));
}

// ---- one optimizer step -----------------------------------------------------------------------

void TrainingEngine::Step(const at::Tensor& loss) {
  if (!answer_due_) BadUse("Step was called without a microbatch from NextBatch");
  answer_due_ = false;
  const SampleSlice& microbatch = plan_->microbatches[next_microbatch_];
  const bool first = next_microbatch_ == 0;
  const bool last = next_microbatch_ + 1 == plan_->microbatches.size();
  gradients_.PrepareBackward();
  loss.backward();
  // A replica alone with one microbatch sees no noise within the step: MeasureNoise compares steps.
  if (!(first && last && group_.size() == 1)) {
    local_sqr_ += gradients_.Sqr();
    inverse_size_ += 1.0 / static_cast<double>(microbatch.size);
  }
  gradients_.Accumulate(plan_->WeightOf(microbatch), first, last);
  ++next_microbatch_;
  if (group_.Abandoned()) {
    Regroup(/*broken=*/true);
  } else if (last) {
    FinishStep();
  } else {
    ++times_.accumulation_count;
    times_.accumulation_time_s += SecondsBetween(microbatch_start_, Clock::now());
  }
}

void TrainingEngine::FillTail() {
  gradients_.SetTail(FlatGradients::kPending, group_.Pending() ? 1 : 0);
  gradients_.SetTail(FlatGradients::kLocalSqr, local_sqr_);
  gradients_.SetTail(FlatGradients::kInverseSize, inverse_size_);
  gradients_.SetTail(FlatGradients::kMicrobatches, static_cast<double>(plan_->microbatches.size()));
  const bool wish = group_.rank() == 0 && wished_batch_ > 0;
  gradients_.SetTail(FlatGradients::kNextBatch, wish ? static_cast<double>(wished_batch_) : 0);
  gradients_.SetTail(FlatGradients::kNextAtomic, wish ? static_cast<double>(wished_atomic_) : 0);
}

void TrainingEngine::FinishStep() {
  FillTail();
  const Clock::time_point sync_start = Clock::now();
  const absl::Status summed = group_.AllReduceSum(gradients_.Buffer());
  if (!summed.ok()) {
    Regroup(/*broken=*/true);
    return;
  }
  const double sync_time_s = SecondsBetween(sync_start, Clock::now());
  ApplyStep();
  MeasureTimes(sync_time_s);
  const bool all_know = std::lround(gradients_.tail(FlatGradients::kPending)) == group_.size();
  // From here on the gradients' memory may become the previous step's.
  if (plan_->microbatches.size() == 1 && group_.size() == 1) {
    gradients_.KeepAsPrevious();
  } else {
    gradients_.DropPrevious();
  }
  plan_.reset();
  last_step_end_ = Clock::now();
  if (SecondsBetween(last_progress_, last_step_end_) >= kProgressPeriod_s) {
    last_progress_ = last_step_end_;
    if (group_.rank() == 0) SendProgress();
  }
  if (all_know) Regroup(/*broken=*/false);
}

void TrainingEngine::ApplyStep() {
  TrainingPosition& p = state_.position;
  MeasureNoise();
  StepOptimizer();
  ++p.step;
  p.cursor += plan_->samples;
  const auto initial = static_cast<double>(bounds_.initial);
  p.progress +=
      Gain(p.noise.Sqr(), p.noise.Var(initial), static_cast<double>(plan_->samples) / initial);
  trial_.progress = p.progress;
  if (const auto batch = std::lround(gradients_.tail(FlatGradients::kNextBatch)); batch > 0) {
    p.batch_size = batch;
    p.atomic_batch_size = std::lround(gradients_.tail(FlatGradients::kNextAtomic));
    wished_batch_ = 0;
  }
}

void TrainingEngine::MeasureNoise() {
  TrainingPosition& p = state_.position;
  const auto samples = static_cast<double>(plan_->samples);
  const double scale = samples / static_cast<double>(bounds_.initial);
  const double microbatches = gradients_.tail(FlatGradients::kMicrobatches);
  std::optional<NoiseEstimate> seen;
  const bool biased = microbatches < 1.5;
  if (!biased) {
    seen =
        EstimateNoise({.local_sqr_mean = gradients_.tail(FlatGradients::kLocalSqr) / microbatches,
                       .inverse_mean = gradients_.tail(FlatGradients::kInverseSize) / microbatches,
                       .total_sqr = gradients_.Sqr(),
                       .samples = samples});
  } else if (gradients_.has_previous() && plan_->samples == p.batch_size) {
    seen = EstimateNoiseFromPrevious(gradients_.Sqr(), gradients_.PreviousSqr(),
                                     gradients_.ProductWithPrevious(), samples);
  }
  if (seen) p.noise.Add(*seen, biased ? 2 * scale : scale, biased);
}

double TrainingEngine::LearningRateFactor() const {
  const TrainingPosition& p = state_.position;
  const auto base = static_cast<double>(base_batch_size_);
  // By the batch size that is meant, also in the shorter step at an epoch's end.
  return rule_.factor({.scale = static_cast<double>(p.batch_size) / base,
                       .sqr = p.noise.Sqr(),
                       .var = p.noise.Var(base),
                       .progress = p.progress});
}

void TrainingEngine::StepOptimizer() {
  const double factor = LearningRateFactor();
  std::vector<double> rates;
  for (auto& group : optimizer_.param_groups()) {
    rates.push_back(group.options().get_lr());
    group.options().set_lr(rates.back() * factor);
  }
  optimizer_.step();
  std::size_t i = 0;
  for (auto& group : optimizer_.param_groups()) group.options().set_lr(rates[i++]);
  const bool scaled = gradients_.scaled();
  ScaleNorms();
  // Norms of scaled and unscaled gradients have nothing to do with one another.
  if (gradients_.scaled() != scaled) state_.position.noise = {};
}

void TrainingEngine::ScaleNorms() {
  gradients_.ScaleNorms(GradientScale(optimizer_, gradients_.parameters()));
}

// ---- what the service and the batch size are decided by -----------------------------------------

void TrainingEngine::MeasureTimes(double sync_time_s) {
  const TrainingPosition& p = state_.position;
  times_.optimizer_time_s = SecondsBetween(microbatch_start_, Clock::now());
  times_.sync_time_s = sync_time_s;
  group_.ExpectStepTime(times_.accumulation_time_s + times_.optimizer_time_s);
  if (plan_->samples != p.batch_size || plan_->microbatches.empty()) return;
  profile_.Add({group_.nodes(), group_.size(), plan_->microbatches.front().size}, times_);
}

void TrainingEngine::SendProgress() {
  const TrainingPosition& p = state_.position;
  const StepPlan plan = PlanStep(0, std::max(order_->size(), p.batch_size), p.batch_size, 0,
                                 group_.size(), MaxAtomic());
  ReplicaProgress word;
  word.generation = trial_.generation;
  word.step = p.step;
  word.progress = p.progress;
  word.epoch = static_cast<double>(p.epoch) +
               static_cast<double>(p.cursor) / static_cast<double>(order_->size());
  word.global_batch_size = p.batch_size;
  word.atomic_batch_size = plan.microbatches.front().size;
  word.accumulation_steps = static_cast<std::int64_t>(plan.microbatches.size()) - 1;
  word.learning_rate = optimizer_.param_groups().front().options().get_lr() * LearningRateFactor();
  word.gradient_sqr = p.noise.Sqr();
  word.gradient_var = p.noise.Var(static_cast<double>(bounds_.initial));
  word.profile = profile_.Take();
  if (tuner_) {
    tuner_->Add(word.profile);
    const GradientNoise noise =
        p.noise.empty() ? GradientNoise{} : GradientNoise{word.gradient_sqr, word.gradient_var};
    const auto choice =
        tuner_->Choose(group_.nodes(), group_.size(), noise, p.batch_size, word.atomic_batch_size);
    if (choice) {
      wished_batch_ = choice->global();
      wished_atomic_ = choice->atomic_batch_size;
    }
  }
  trial_.control->Send(word);
}

// ---- groups -------------------------------------------------------------------------------------

void TrainingEngine::Regroup(bool broken) {
  const double lost_s = broken ? SecondsBetween(last_step_end_, Clock::now()) : 0.0;
  if (broken) gradients_.Renew();
  plan_.reset();
  const bool reported = group_.rank() == 0;
  group_.Regroup(last_step_end_, lost_s);
  TrainingPosition& p = state_.position;
  // The global batch stays; its best division for the new group is to be seen.
  p.atomic_batch_size = 0;
  wished_batch_ = 0;
  gradients_.DropPrevious();
  ScaleNorms();
  profile_.StartGroup();
  if (!reported) profile_.Take();  // another has reported these steps
  trial_.progress = p.progress;
  last_step_end_ = Clock::now();
}

// ---- evaluation ---------------------------------------------------------------------------------

absl::Status TrainingEngine::ShareBuffers() {
  if (group_.size() == 1) return absl::OkStatus();
  std::int64_t bytes = 0;
  std::vector<at::Tensor> buffers = model_.buffers();
  for (const at::Tensor& b : buffers) bytes += static_cast<std::int64_t>(b.nbytes());
  if (bytes == 0) return absl::OkStatus();
  // Running statistics differ between replicas; rank 0's count, as they do in a checkpoint.
  auto packed = std::make_shared<std::vector<std::uint8_t>>(static_cast<std::size_t>(bytes));
  std::size_t offset = 0;
  for (const at::Tensor& b : buffers) {
    const at::Tensor whole = b.detach().contiguous();
    std::memcpy(packed->data() + offset, whole.const_data_ptr(), whole.nbytes());
    offset += whole.nbytes();
  }
  ESPALIER_RETURN_IF_ERROR(group_.Broadcast(CollectiveBuffer::Of(packed), 0));
  offset = 0;
  for (const at::Tensor& b : buffers) {
    at::Tensor whole = at::empty(b.sizes(), b.options());
    std::memcpy(whole.mutable_data_ptr(), packed->data() + offset, whole.nbytes());
    offset += whole.nbytes();
    b.detach().copy_(whole);
  }
  return absl::OkStatus();
}

absl::Status TrainingEngine::EvaluateShare(std::int64_t size, std::int64_t batch_size,
                                           const SumOver& sum_over, std::vector<double>& sums,
                                           bool& pending) {
  ESPALIER_RETURN_IF_ERROR(ShareBuffers());
  const SampleSlice share = CutEvenly({0, size}, group_.rank(), group_.size());
  auto totals = std::make_shared<std::vector<double>>(sums.size() + 1);
  for (std::int64_t done = 0; done < share.size; done += batch_size) {
    if (group_.Abandoned()) return absl::AbortedError("the group is broken");
    const std::vector<double> part =
        sum_over(IndexRange({share.begin + done, std::min(batch_size, share.size - done)}));
    if (part.size() != sums.size()) {
      BadUse(absl::StrCat("EvaluateSums: the function gave ", part.size(), " sums: want ",
                          sums.size()));
    }
    for (std::size_t i = 0; i < part.size(); ++i) (*totals)[i] += part[i];
  }
  totals->back() = group_.Pending() ? 1 : 0;
  ESPALIER_RETURN_IF_ERROR(group_.AllReduceSum(CollectiveBuffer::Of(totals)));
  std::copy(totals->begin(), totals->end() - 1, sums.begin());
  pending = std::lround(totals->back()) == group_.size();
  return absl::OkStatus();
}

std::vector<double> TrainingEngine::Evaluate(std::int64_t size, std::int64_t batch_size,
                                             std::size_t sums, const SumOver& sum_over) {
  if (size < 1 || batch_size < 1) BadUse("Evaluate: size and batch_size are positive numbers");
  if (!group_.joined()) BadUse("Evaluate was called before NextEpoch");
  if (answer_due_) BadUse("Evaluate was called where Step was due");
  TrainingPosition& p = state_.position;
  if (next_evaluation_.epoch != local_epoch_ || next_evaluation_.step != p.step) {
    next_evaluation_ = {local_epoch_, p.step, 0};
  }
  const EvaluationKey key = next_evaluation_;
  ++next_evaluation_.call;

  const bool was_training = model_.is_training();
  model_.eval();
  const absl::Cleanup restore_mode = [&] { model_.train(was_training); };
  const at::NoGradGuard no_grad;
  while (!p.evaluation_results.contains(key)) {
    std::vector<double> result(sums);
    bool all_know = false;
    const absl::Status done = EvaluateShare(size, batch_size, sum_over, result, all_know);
    if (done.ok()) {
      p.AddEvaluation(key, result);
      last_step_end_ = Clock::now();
    }
    if (!done.ok() || all_know) Regroup(/*broken=*/!done.ok());
  }
  const std::vector<double> result = p.evaluation_results.at(key);
  return result;
}

}  // namespace espalier
