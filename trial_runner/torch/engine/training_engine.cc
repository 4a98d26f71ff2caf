#include "trial_runner/torch/engine/training_engine.h"

#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/random.h"
#include "trial_runner/elastic/batch_bounds.h"
#include "trial_runner/torch/engine/libtorch_parts.h"

namespace espalier {
namespace {

// What measures steps where they are done on a device; null: the host's clock does.
std::unique_ptr<StepTimer> MakeStepTimer(const TrialContext& trial) {
  if (trial.step_timer) return trial.step_timer();
  return trial.device.is_cpu() ? nullptr : StepTimer::For(trial.device);
}

std::unique_ptr<Collectives> MakeCollectives(const TrialContext& trial) {
  auto made = MakeCollectives(trial.collectives);
  if (!made.ok()) EndProcess(made.status(), kBadUseExitCode);
  return *std::move(made);
}

// Of this process, in bytes; 0 where it cannot be found out.
std::int64_t ResidentMemory() {
  std::ifstream file("/proc/self/statm");
  std::int64_t total_pages = 0;
  std::int64_t resident_pages = 0;
  file >> total_pages >> resident_pages;
  return file ? resident_pages * sysconf(_SC_PAGESIZE) : 0;
}

// For a GPU in pinned memory, from which it can be copied while the host goes on.
at::Tensor IndexTensor(std::span<const std::int64_t> indices, c10::Device device) {
  at::Tensor tensor = at::empty({static_cast<std::int64_t>(indices.size())},
                                at::TensorOptions(at::kLong).pinned_memory(device.is_cuda()));
  std::copy(indices.begin(), indices.end(), tensor.mutable_data_ptr<std::int64_t>());
  return tensor;
}

}  // namespace

std::shared_ptr<TrainingEngine> TrainingEngine::Of(TrialContext& trial) {
  std::shared_ptr<TrainingEngine> engine = trial.engine.lock();
  if (!engine) {
    engine = std::make_shared<TrainingEngine>(trial);
    trial.engine = engine;
  }
  return engine;
}

TrainingEngine::TrainingEngine(TrialContext& trial, std::unique_ptr<CheckpointFormat> format)
    : trial_(trial),
      format_(format ? std::move(format) : std::make_unique<LibTorchCheckpoints>(trial.parameters)),
      collectives_(MakeCollectives(trial)),
      state_(trial, *format_),
      group_(
          trial, *collectives_, state_, [this] { ReleaseMemory(); },
          [this] { step_.PrepareGradients(); }),
      sums_(group_, state_.sums),
      meter_(MakeStepTimer(trial)),
      step_(trial, state_, group_, *collectives_, batches_, meter_) {}

std::size_t TrainingEngine::AddModel(torch::nn::Module& model, torch::optim::Optimizer& optimizer,
                                     const DataParallelOptions& options) {
  auto* const checkpoints = dynamic_cast<LibTorchCheckpoints*>(format_.get());
  ESPALIER_CHECK(checkpoints != nullptr, "models of LibTorch are saved in its format");
  const std::size_t number =
      step_.AddModel(std::make_unique<LibTorchModel>(model),
                     std::make_unique<LibTorchOptimizer>(optimizer), options);
  checkpoints->AddModel(options.name, model, optimizer);
  return number;
}

void TrainingEngine::SetData(std::int64_t dataset_size, const DataLoaderOptions& options) {
  if (group_.joined()) BadUse("the data and its batch size are set before the first NextEpoch");
  const absl::StatusOr<BatchBounds> bounds = BoundsOf(options, dataset_size, trial_.adaptive_batch);
  if (!bounds.ok()) EndProcess(bounds.status(), kBadUseExitCode);
  batches_.SetData(dataset_size, *bounds);
  order_.emplace(dataset_size, trial_.seed);
  data_options_ = options;
}

// ---- another batch size between epochs --------------------------------------------------------

BatchBounds TrainingEngine::CheckedBounds(std::int64_t batch_size) const {
  DataLoaderOptions options = data_options_;
  options.batch_size = batch_size;
  const absl::StatusOr<BatchBounds> bounds =
      BoundsOf(options, order_->size(), trial_.adaptive_batch);
  if (!bounds.ok()) EndProcess(bounds.status(), kBadUseExitCode);
  return *bounds;
}

void TrainingEngine::SetBounds(const BatchBounds& bounds) {
  batches_.SetData(order_->size(), bounds);
  BatchBounds final = bounds;
  final.max_unsplit = MaxUnsplit();
  batches_.SetData(order_->size(), final);
}

void TrainingEngine::FollowBatchSize() {
  const std::int64_t batch_size = state_.position.batch_size;
  if (trial_.adaptive_batch || batch_size <= 0 || batch_size == batches_.bounds().initial) return;
  SetBounds(CheckedBounds(batch_size));
  step_.DropPrevious();
}

void TrainingEngine::SetBatchSize(std::int64_t batch_size) {
  if (!group_.joined()) BadUse("SetBatchSize was called before the first NextEpoch");
  if (trial_.adaptive_batch) {
    BadUse(absl::StrCat("the batch size was set to ", batch_size,
                        " after training began, and the study's batch is adaptive: the trial "
                        "itself chooses it"));
  }
  CheckedBounds(batch_size);
  TrainingPosition& p = state_.position;
  // A spare that comes back when the others have gone on: it comes to their epoch by itself.
  if (p.epoch != local_epoch_) return;
  if (loop_ended_) {
    p.next_batch_size = batch_size == p.batch_size ? 0 : batch_size;
    return;
  }
  if (batch_size == p.batch_size) return;
  if (p.cursor > 0 || p.models_stepped > 0 || step_.plan()) {
    BadUse(absl::StrCat("the batch size was set to ", batch_size, " within an epoch, where it is ",
                        p.batch_size,
                        ": set it before the epoch's first batch or after its last one"));
  }
  step_.Settle();
  p.batch_size = batch_size;
  FollowBatchSize();
}

// ---- epochs and microbatches ------------------------------------------------------------------

void TrainingEngine::Join(std::int64_t epochs) {
  if (!order_) BadUse("AdaptiveDataParallel: make an AdaptiveDataLoader first");
  SetBounds(batches_.bounds());
  const BatchBounds bounds = batches_.bounds();
  if (trial_.adaptive_batch) batches_.Tune();
  if (!trial_.checkpoint.empty()) {
    const absl::Status loaded = state_.LoadCheckpoint(trial_.checkpoint);
    if (!loaded.ok()) EndProcess(loaded, 1);
  }
  // LibTorch's serialization takes its time the first time: better now than while others wait.
  const absl::Status warmed = state_.WarmUp();
  if (!warmed.ok()) EndProcess(warmed, 1);
  group_.Join({.address = "",
               .batch = bounds,
               .total_steps = epochs,
               .not_rehearsed = trial_.joins > 0 ? WhyNotRehearsed() : ""});
  TrainingPosition& p = state_.position;
  const bool set_since = !trial_.adaptive_batch && p.loader_batch_size == bounds.initial;
  if (p.batch_size == 0 || (!trial_.adaptive_batch && !set_since)) {
    p.batch_size = bounds.initial;
    p.next_batch_size = 0;
  }
  p.loader_batch_size = bounds.initial;
  FollowBatchSize();
  p.atomic_batch_size = 0;  // as Regroup does in those that were there before
  step_.StartGroup();
  step_.DrawAlike();
  trial_.progress = state_.position.progress;
  last_step_end_ = Clock::now();
  meter_.StartPeriod(last_step_end_);
}

bool TrainingEngine::NextEpoch(std::int64_t epochs) {
  if (step_.rehearsing()) BadUse("NextEpoch was called within Rehearse");
  if (step_.answer_due()) EndMicrobatch();
  TrainingPosition& p = state_.position;
  const std::int64_t former = std::exchange(epochs_, epochs);
  if (!group_.joined()) {
    Join(epochs);
  } else if (local_epoch_ < former) {  // the last call found an epoch to train
    FinishEpoch();
  }
  local_epoch_ = p.epoch;
  evaluation_keys_.BeginEpoch();
  loop_ended_ = others_left_ = false;
  step_.ClearPlan();
  return local_epoch_ < epochs;
}

bool TrainingEngine::InMidEpoch() const {
  const TrainingPosition& p = state_.position;
  return p.epoch == local_epoch_ && p.cursor < order_->size();
}

void TrainingEngine::FinishEpoch() {
  TrainingPosition& p = state_.position;
  step_.Settle();  // the program may have left the epoch early
  AgreeOnProgram();
  if (group_.narrowed()) {
    const bool told = std::exchange(loop_ended_, true);
    ComeTogether(/*in_loop=*/told);
  }
  while (p.epoch == local_epoch_) {
    bool all_know = false;  // the next step will tell as well
    const std::int64_t next = p.next_batch_size > 0 ? p.next_batch_size : p.batch_size;
    const ProgramPlace end{.kind = ProgramPlace::Kind::kEpochEnd,
                           .epoch = local_epoch_,
                           .step = p.step,
                           .batch_size = next};
    const absl::Status met = group_.Meet(end);
    if (!met.ok() || !sums_.Merge(all_know).ok() || !step_.CompareReplicas().ok()) {
      StartOver(met);
      continue;
    }
    ++p.epoch;
    p.cursor = 0;
    if (p.next_batch_size > 0) p.batch_size = std::exchange(p.next_batch_size, 0);
    FollowBatchSize();
    state_.SyncStates();
    if (group_.rank() == 0) state_.SaveCheckpoint();
    step_.DrawAlike();
  }
  // Not before: who joins there does the program's end of the epoch again, on a state with it done.
  RegroupIfDue();
}

std::int64_t TrainingEngine::MaxUnsplit() const {
  // A step of one microbatch only tells of its noise beside the step before, and where the rate is
  // high the two differ by what was learnt between them. At the base size nobody needs to know; of
  // several models the later ones would see the first ones' step in the last microbatch only.
  const std::int64_t initial = batches_.bounds().initial;
  if (step_.models().size() != 1) return initial;
  return std::min(initial, static_cast<std::int64_t>(BaseBatchSize(0)));
}

std::optional<SampleSlice> TrainingEngine::NextMicrobatch() {
  if (step_.rehearsing()) BadUse("NextBatch was called within Rehearse");
  if (step_.answer_due()) EndMicrobatch();
  if (local_epoch_ < 0) BadUse("NextBatch was called before NextEpoch");
  evaluation_keys_.ComeToLoop();
  loop_ended_ = false;
  AgreeOnProgram();
  RegroupIfDue();
  while (InMidEpoch() && !std::exchange(others_left_, false)) {
    if (!step_.plan()) {
      step_.Begin(
          batches_.Plan(state_.position, group_.rank(), group_.size(), group_.whole_size()));
    }
    if (step_.plan()->samples < group_.size() && !Divide()) continue;
    if (step_.plan()->microbatches.empty()) {
      ComeTogether(/*in_loop=*/true);
      if (!others_left_) RegroupIfDue();
      continue;
    }
    return step_.plan()->microbatches[step_.next_microbatch()];
  }
  step_.Settle();  // before anybody asks how many were skipped
  loop_ended_ = true;
  return std::nullopt;
}

MicrobatchForecast TrainingEngine::Forecast() const {
  const TrainingPosition& p = state_.position;
  return MicrobatchForecast({.epoch = local_epoch_,
                             .epochs = epochs_,
                             .cursor = p.cursor,
                             .microbatch = step_.next_microbatch(),
                             .epoch_size = order_->size(),
                             .batch_size = p.batch_size,
                             .rank = group_.rank(),
                             .replicas = group_.whole_size(),
                             .max_atomic = batches_.MaxAtomic(p, group_.whole_size()),
                             .aligned = batches_.aligned()});
}

void TrainingEngine::BeginMicrobatch() {
  group_.At({.kind = ProgramPlace::Kind::kStep,
             .epoch = state_.position.epoch,
             .step = state_.position.step + 1});
  evaluation_keys_.BeginMicrobatch();
  step_.BeginMicrobatch();
}

void TrainingEngine::CopySamples(std::int64_t size, std::int64_t epoch, const SampleSlice& slice,
                                 std::int64_t* samples) const {
  std::ranges::copy(SampleOrder(size, trial_.seed).Slice(epoch, slice), samples);
}

std::optional<at::Tensor> TrainingEngine::NextBatch() {
  const std::optional<SampleSlice> microbatch = NextMicrobatch();
  if (!microbatch) return std::nullopt;
  BeginMicrobatch();
  return IndexTensor(order_->Slice(local_epoch_, *microbatch), trial_.device);
}

// ---- rehearsals ---------------------------------------------------------------------------------

std::string TrainingEngine::WhyNotRehearsed() const {
  if (!not_rehearsed_.empty()) return not_rehearsed_;
  if (step_.rehearsed()) return "";
  return "its program does not say how: want loader.Rehearse(step) before the first NextEpoch";
}

std::int64_t TrainingEngine::RehearsedSamples() const {
  const auto replicas = static_cast<int>(std::max<std::int64_t>(trial_.joins, 1));
  TrainingPosition first;
  first.batch_size = batches_.bounds().initial;
  return batches_.FullPlan(first, replicas).microbatches.front().size;
}

at::Tensor TrainingEngine::RehearsedIndices() {
  if (!order_) BadUse("Rehearse was called without a loader");
  return IndexTensor(order_->Slice(0, {0, RehearsedSamples()}), trial_.device);
}

// ---- one optimizer step -----------------------------------------------------------------------

void TrainingEngine::Proceed(OptimizerStep::Progress progress) {
  if (progress == OptimizerStep::Progress::kGroupLost) StartOver();
  if (progress != OptimizerStep::Progress::kDone) return;
  step_.Finish();
  EndStep();
  if (meter_.ReportDue(last_step_end_)) {
    if (group_.rank() == 0) SendProgress();
    meter_.StartPeriod(last_step_end_);
  }
  regroup_due_ = step_.all_know();
}

void TrainingEngine::EndStep() {
  const Clock::time_point now = Clock::now();
  const double step_s = std::chrono::duration<double>(now - last_step_end_).count();
  last_step_end_ = now;
  if (std::exchange(has_grown_, false)) {
    growth_step_s_ = step_s;
  } else if (growth_step_s_) {
    growth_cost_s_ = std::max(0.0, *std::exchange(growth_step_s_, std::nullopt) - step_s);
  }
}

OptimizerStep::ModelOutcome TrainingEngine::StepModel(std::size_t number, double loss_scale) {
  if (!step_.CloseModel(number)) StartOver();
  const OptimizerStep::ModelOutcome outcome = step_.StepModel(number, loss_scale);
  Proceed(step_.EndModel());
  return outcome;
}

OptimizerStep::ModelOutcome TrainingEngine::PassOverModel(std::size_t number) {
  if (!step_.CloseModel(number)) StartOver();
  const OptimizerStep::ModelOutcome outcome = step_.PassOverModel(number);
  Proceed(step_.EndModel());
  return outcome;
}

void TrainingEngine::EndMicrobatch() {
  if (!step_.LeaveOut()) StartOver();
  Proceed(step_.EndPasses());
}

// ---- what the service and the batch size are decided by -----------------------------------------

void TrainingEngine::SendProgress() {
  const TrainingPosition& p = state_.position;
  const StepPlan plan = batches_.FullPlan(p, group_.whole_size());
  const auto initial = static_cast<double>(batches_.bounds().initial);
  ReplicaProgress message;
  message.generation = trial_.generation;
  message.step = p.step;
  message.progress = p.progress;
  message.epoch = static_cast<double>(p.epoch) +
                  static_cast<double>(p.cursor) / static_cast<double>(order_->size());
  message.global_batch_size = p.batch_size;
  message.noise = p.Noise(static_cast<double>(data_options_.batch_size));  // as the group was told
  meter_.Report(group_.members(), message);
  const double scale = static_cast<double>(p.batch_size) / initial;
  TrainingFigures& figures = message.figures;
  figures[Figure::kAtomicBatchSize] = static_cast<double>(plan.microbatches.front().size);
  figures[Figure::kAccumulationSteps] = static_cast<double>(plan.microbatches.size()) - 1;
  if (!step_.models().empty()) {
    figures[Figure::kLearningRate] = step_.LearningRate();
    figures[Figure::kLossScale] = p.models.front().loss_scale;
  }
  figures[Figure::kGoodput] = meter_.Throughput() * CurrentGain() / scale;
  figures[Figure::kMemory] = static_cast<double>(ResidentMemory());
  figures[Figure::kDeviceMemory] = static_cast<double>(AllocatedBytes(trial_.device));
  figures[Figure::kSkippedSteps] = static_cast<double>(p.skipped_steps);
  figures[Figure::kGrowthStep] = growth_cost_s_;
  figures[Figure::kGradientTransport] = static_cast<double>(collectives_->Way().transport);
  batches_.Learn(message.profile, p, plan.microbatches.front().size, group_.nodes(),
                 group_.whole_size());
  message.checks = std::exchange(trial_.checks, {});
  trial_.control->Send(message);
}

}  // namespace espalier
