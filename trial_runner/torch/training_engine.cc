#include "trial_runner/torch/training_engine.h"

#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "trial_runner/elastic/batch_bounds.h"
#include "trial_runner/torch/libtorch_parts.h"
#include "tuner/base/check.h"
#include "tuner/base/random.h"

namespace espalier {
namespace {

constexpr double kProgressPeriod_s = 1.0;

using Clock = TrainingEngine::Clock;

double SecondsBetween(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
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
      format_(format ? std::move(format) : std::make_unique<LibTorchCheckpoints>()),
      collectives_(MakeCollectives(trial)),
      state_(trial, *format_),
      group_(
          trial, *collectives_, state_, [this] { ReleaseMemory(); },
          [this] {
            for (const auto& model : models_) model->PrepareGradients();
          }) {
  if (!trial.device.is_cpu()) device_times_.emplace(StepTimer::For(trial.device));
}

std::size_t TrainingEngine::AddModel(torch::nn::Module& model, torch::optim::Optimizer& optimizer,
                                     const DataParallelOptions& options) {
  auto* const checkpoints = dynamic_cast<LibTorchCheckpoints*>(format_.get());
  ESPALIER_CHECK(checkpoints != nullptr, "models of LibTorch are saved in its format");
  const std::size_t number = AddModel(std::make_unique<LibTorchModel>(model),
                                      std::make_unique<LibTorchOptimizer>(optimizer), options);
  checkpoints->AddModel(options.name, model, optimizer);
  return number;
}

std::size_t TrainingEngine::AddModel(std::unique_ptr<ModelPart> model,
                                     std::unique_ptr<OptimizerPart> optimizer,
                                     const DataParallelOptions& options) {
  if (group_.joined()) {
    BadUse(absl::StrCat("AdaptiveDataParallel \"", options.name,
                        "\" was made after training began: make all of them before"));
  }
  auto made =
      TrainedModel::Make(std::move(model), std::move(optimizer), options, trial_.bucket_operations);
  if (!made.ok()) EndProcess(made.status(), kBadUseExitCode);
  if (const auto misplaced = MisplacedModel((*made)->what(), (*made)->device(), trial_.device)) {
    std::fprintf(stderr, "espalier: %s\n", misplaced->c_str());
  }
  const absl::Status added = state_.AddModel(options.name, (*made)->model(), (*made)->optimizer());
  if (!added.ok()) EndProcess(added, kBadUseExitCode);
  state_.position.models.push_back((*made)->FirstPosition());
  models_.push_back(*std::move(made));
  return models_.size() - 1;
}

void TrainingEngine::SetData(std::int64_t dataset_size, const DataLoaderOptions& options) {
  if (group_.joined()) BadUse("the data and its batch size are set before the first NextEpoch");
  const absl::StatusOr<BatchBounds> bounds = BoundsOf(options, dataset_size, trial_.adaptive_batch);
  if (!bounds.ok()) EndProcess(bounds.status(), kBadUseExitCode);
  bounds_ = *bounds;
  order_.emplace(dataset_size, trial_.seed);
}

// ---- epochs and microbatches ------------------------------------------------------------------

void TrainingEngine::Join(std::int64_t epochs) {
  if (!order_) BadUse("AdaptiveDataParallel: make an AdaptiveDataLoader first");
  bounds_.max_unsplit = MaxUnsplit();
  if (trial_.adaptive_batch) tuner_.emplace(bounds_);
  if (!trial_.checkpoint.empty()) {
    const absl::Status loaded = state_.LoadCheckpoint(trial_.checkpoint);
    if (!loaded.ok()) EndProcess(loaded, 1);
  }
  // LibTorch's serialization takes its time the first time: better now than while others wait.
  const absl::Status warmed = state_.WarmUp();
  if (!warmed.ok()) EndProcess(warmed, 1);
  group_.Join({.address = "", .batch = bounds_, .total_steps = epochs});
  if (!trial_.adaptive_batch || state_.position.batch_size == 0) {
    state_.position.batch_size = bounds_.initial;
  }
  state_.position.atomic_batch_size = 0;  // as Regroup does in those that were there before
  for (const auto& model : models_) model->StartGroup(collectives_->FromDeviceToDevice());
  trial_.progress = state_.position.progress;
  last_progress_ = last_step_end_ = Clock::now();
}

bool TrainingEngine::NextEpoch(std::int64_t epochs) {
  if (answer_due_) BadUse("NextEpoch was called where Step was due");
  if (rehearsing_) BadUse("NextEpoch was called within Rehearse");
  TrainingPosition& p = state_.position;
  const std::int64_t former = std::exchange(epochs_, epochs);
  if (!group_.joined()) {
    Join(epochs);
  } else if (local_epoch_ < former) {  // the last call found an epoch to train
    FinishEpoch();
  }
  local_epoch_ = p.epoch;
  loop_ended_ = others_left_ = false;
  plan_.reset();
  return local_epoch_ < epochs;
}

bool TrainingEngine::InMidEpoch() const {
  const TrainingPosition& p = state_.position;
  return p.epoch == local_epoch_ && p.cursor < order_->size();
}

void TrainingEngine::FinishEpoch() {
  TrainingPosition& p = state_.position;
  SettleSteps();  // the program may have left the epoch early
  if (group_.narrowed()) {
    const bool told = std::exchange(loop_ended_, true);
    ComeTogether(/*in_loop=*/told);
  }
  while (p.epoch == local_epoch_) {
    bool all_know = false;  // the next step will tell as well
    if (!MergeSums(all_know).ok()) {
      Regroup(/*broken=*/true);
      continue;
    }
    ++p.epoch;
    p.cursor = 0;
    state_.SyncStates();
    if (group_.rank() == 0) state_.SaveCheckpoint();
  }
  // Not before: who joins there does the program's end of the epoch again, on a state with it done.
  RegroupIfDue();
}

std::int64_t TrainingEngine::MaxUnsplit() const {
  // A step of one microbatch only tells of its noise beside the step before, and where the rate is
  // high the two differ by what was learnt between them. At the base size nobody needs to know; of
  // several models the later ones would see the first ones' step in the last microbatch only.
  if (models_.size() != 1) return bounds_.initial;
  const double base = models_.front()->BaseBatchSize(static_cast<double>(bounds_.initial));
  return std::min(bounds_.initial, static_cast<std::int64_t>(base));
}

std::int64_t TrainingEngine::MaxAtomic() const {
  const TrainingPosition& p = state_.position;
  const std::int64_t most = p.atomic_batch_size > 0 ? p.atomic_batch_size : bounds_.max_atomic;
  const bool in_two = group_.whole_size() == 1 && bounds_.SplitsFixedAlone(p.batch_size);
  if (in_two) return std::min(most, (p.batch_size + 1) / 2);
  // Shares of two and of one are not cut alike by ones.
  return aligned_ ? std::max<std::int64_t>(most, 2) : most;
}

void TrainingEngine::PlanNextStep() {
  const TrainingPosition& p = state_.position;
  plan_ = PlanStep(p.cursor, order_->size(), p.batch_size, group_.rank(), group_.size(),
                   MaxAtomic(), aligned_);
  next_microbatch_ = 0;
  inverse_size_ = compute_time_s_ = 0;
  times_ = {};
  all_know_ = skipped_ = false;
  microbatch_start_ = Clock::now();
  // Dropout and the like draw differently in each step and replica, and the same again if the step
  // has to be repeated.
  at::manual_seed(MixSeed(MixSeed(trial_.seed, static_cast<std::uint64_t>(p.step)),
                          static_cast<std::uint64_t>(group_.rank())));
}

std::optional<SampleSlice> TrainingEngine::NextMicrobatch() {
  if (answer_due_) BadUse("NextBatch was called again where Step was due");
  if (local_epoch_ < 0) BadUse("NextBatch was called before NextEpoch");
  loop_ended_ = false;
  RegroupIfDue();
  while (InMidEpoch() && !std::exchange(others_left_, false)) {
    if (!plan_) PlanNextStep();
    if (plan_->samples < group_.size() && !Divide()) continue;
    if (plan_->microbatches.empty()) {
      ComeTogether(/*in_loop=*/true);
      if (!others_left_) RegroupIfDue();
      continue;
    }
    return plan_->microbatches[next_microbatch_];
  }
  SettleSteps();  // before anybody asks how many were skipped
  loop_ended_ = true;
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
                             .replicas = group_.whole_size(),
                             .max_atomic = MaxAtomic(),
                             .aligned = aligned_});
}

void TrainingEngine::BeginMicrobatch() {
  group_.At({.kind = ProgramPlace::Kind::kStep,
             .epoch = state_.position.epoch,
             .step = state_.position.step + 1});
  microbatch_start_ = Clock::now();
  answer_due_ = true;
  trained_since_evaluation_ = true;
  dropped_ = broken_ = hold_gradients_ = false;
  state_.sums.BeginMicrobatch();
  next_model_ = 0;
  inverse_size_ += 1.0 / static_cast<double>(plan_->microbatches[next_microbatch_].size);
  if (device_times_) device_times_->BeginMicrobatch(InLastMicrobatch());
}

void TrainingEngine::CopySamples(std::int64_t epoch, const SampleSlice& slice,
                                 std::int64_t* samples) {
  std::ranges::copy(order_->Slice(epoch, slice), samples);
}

std::optional<at::Tensor> TrainingEngine::NextBatch() {
  const std::optional<SampleSlice> microbatch = NextMicrobatch();
  if (!microbatch) return std::nullopt;
  BeginMicrobatch();
  return IndexTensor(order_->Slice(local_epoch_, *microbatch), trial_.device);
}

// ---- one optimizer step -----------------------------------------------------------------------

TrainedModel::StepFacts TrainingEngine::Facts() const {
  const TrainingPosition& p = state_.position;
  return {.samples = static_cast<double>(plan_ ? plan_->samples : p.batch_size),
          .batch_size = static_cast<double>(p.batch_size),
          .initial_batch = static_cast<double>(bounds_.initial),
          .progress = p.progress,
          .dataset_size = static_cast<double>(order_->size())};
}

// All of the step that was not spent waiting for others. What a device needed is known a step
// later.
double TrainingEngine::ComputeTime() const {
  if (device_times_) return device_step_.compute_s;
  return compute_time_s_ + SecondsBetween(microbatch_start_, Clock::now()) - times_.sync_time_s;
}

void TrainingEngine::Step(std::size_t number, const at::Tensor& loss) {
  if (!answer_due_) BadUse("Step was called without a microbatch from NextBatch");
  if (number != next_model_) {
    BadUse(
        absl::StrCat("Step was called for model \"", models_[number]->options().name,
                     "\" where it was due for \"", models_[next_model_]->options().name,
                     "\": each is called once for each microbatch, in the order they were made"));
  }
  const bool last_model = ++next_model_ == models_.size();
  if (last_model) answer_due_ = false;
  if (rehearsing_) return BackwardOfRehearsal(number, loss);
  if (dropped_) return;
  const SampleSlice& microbatch = plan_->microbatches[next_microbatch_];
  const bool last = next_microbatch_ + 1 == plan_->microbatches.size();
  const auto count = static_cast<std::int64_t>(number);
  // A group that was lost between two models' steps goes on with the second one's.
  if (count >= state_.position.models_stepped) {
    models_[number]->Backward(
        loss, {.weight = plan_->WeightOf(microbatch), .first = next_microbatch_ == 0, .last = last},
        state_.position.models[number], group_.collectives(), group_.size());
    if (group_.Abandoned()) {
      Regroup(/*broken=*/true);
      return;
    }
    if (last && !FinishModel(number)) return;
  }
  if (last_model) EndOfMicrobatch();
}

void TrainingEngine::EndOfMicrobatch() {
  if (InLastMicrobatch()) {
    if (models_.empty() && !AgreeWithoutModels()) return;
    FinishStep();
    return;
  }
  ++next_microbatch_;
  ++times_.accumulation_count;
  if (device_times_) device_times_->EndMicrobatch();
  const double time_s = SecondsBetween(microbatch_start_, Clock::now());
  times_.accumulation_time_s += time_s;
  compute_time_s_ += time_s;
}

void TrainingEngine::FillTail(TrainedModel& model) {
  GradientBuckets& gradients = model.gradients();
  gradients.SetTail(GradientBuckets::kPending, group_.Pending() ? 1 : 0);
  gradients.SetTail(GradientBuckets::kInverseSize, inverse_size_);
  gradients.SetTail(GradientBuckets::kMicrobatches,
                    static_cast<double>(plan_->microbatches.size()));
  gradients.SetTail(GradientBuckets::kNonFiniteLoss,
                    static_cast<double>(model.non_finite_losses()));
  const bool proposes = group_.rank() == 0 && proposed_batch_ > 0;
  gradients.SetTail(GradientBuckets::kNextBatch,
                    proposes ? static_cast<double>(proposed_batch_) : 0);
  gradients.SetTail(GradientBuckets::kNextAtomic,
                    proposes ? static_cast<double>(proposed_atomic_) : 0);
  gradients.SetComputeTime(group_.rank(), ComputeTime());
}

// The model's part of the step. False if the group was lost: then another has formed.
bool TrainingEngine::FinishModel(std::size_t number) {
  if (!ReduceModel(number)) {
    Regroup(/*broken=*/true);
    return false;
  }
  ApplyModel(number);
  return true;
}

bool TrainingEngine::ReduceModel(std::size_t number) {
  TrainedModel& model = *models_[number];
  if (!model.kept()) FillTail(model);
  const Clock::time_point sync_start = Clock::now();
  if (device_times_) device_times_->BeginSync();
  if (!model.Reduce().ok()) return false;
  if (device_times_) device_times_->EndSync();
  times_.sync_time_s += SecondsBetween(sync_start, Clock::now());
  return true;
}

void TrainingEngine::ApplyModel(std::size_t number) {
  TrainedModel& model = *models_[number];
  TrainingPosition& p = state_.position;
  if (number == 0) SettleSteps();  // the step before
  if (!model.Apply(Facts(), p.models[number])) skipped_ = true;
  ++p.models_stepped;
  if (number + 1 == models_.size()) TakeProposal(model);
}

// What the last model's all-reduce brought beside gradients.
void TrainingEngine::TakeProposal(const TrainedModel& model) {
  TrainingPosition& p = state_.position;
  const int size = group_.size();
  replica_times_.resize(static_cast<std::size_t>(size));
  for (int rank = 0; rank < size; ++rank) {
    ReplicaTime& time = replica_times_[static_cast<std::size_t>(rank)];
    ++time.steps;
    time.compute_time_s += model.kept() ? ComputeTime() : model.gradients().compute_time_s(rank);
  }
  all_know_ = model.kept() ? group_.Pending()
                           : std::lround(model.gradients().tail(GradientBuckets::kPending)) == size;
  all_know_ = all_know_ && !group_.narrowed();
  const std::int64_t batch = model.kept()
                                 ? proposed_batch_
                                 : std::lround(model.gradients().tail(GradientBuckets::kNextBatch));
  if (batch <= 0) return;
  p.atomic_batch_size = model.kept()
                            ? proposed_atomic_
                            : std::lround(model.gradients().tail(GradientBuckets::kNextAtomic));
  if (p.batch_size != batch) {
    for (const auto& each : models_) each->DropPrevious();
  }
  p.batch_size = batch;
  proposed_batch_ = 0;
}

void TrainingEngine::FinishStep() {
  TrainingPosition& p = state_.position;
  MeasureTimes();
  const auto samples = static_cast<double>(plan_->samples);
  const auto initial = static_cast<double>(bounds_.initial);
  ++p.step;
  p.models_stepped = 0;
  p.cursor += plan_->samples;
  state_.sums.CountStep();
  if (skipped_) {
    ++p.skipped_steps;
  } else {
    const GradientNoise noise = p.Noise(initial);
    last_gain_ = Gain(noise.sqr, noise.var, samples / initial);
    p.progress += last_gain_;
  }
  trained_samples_ += samples;
  trial_.progress = p.progress;
  plan_.reset();
  last_step_end_ = Clock::now();
  if (skipped_) {
    for (std::size_t i = 0; i < models_.size(); ++i)
      FailAfterSkippedSteps(*models_[i], p.models[i]);
  }
  if (SecondsBetween(last_progress_, last_step_end_) >= kProgressPeriod_s) {
    if (group_.rank() == 0) SendProgress();
    last_progress_ = last_step_end_;
    trained_samples_ = 0;
  }
  regroup_due_ = all_know_;
}

// What a device's steps have turned out to be that were counted as taken.
void TrainingEngine::SettleSteps() {
  TrainingPosition& p = state_.position;
  bool skipped = false;
  for (std::size_t i = 0; i < models_.size(); ++i) {
    if (!models_[i]->Settle(p.models[i])) skipped = true;
  }
  if (!skipped) return;
  ++p.skipped_steps;
  p.progress -= last_gain_;
  for (std::size_t i = 0; i < models_.size(); ++i) FailAfterSkippedSteps(*models_[i], p.models[i]);
}

void TrainingEngine::FailAfterSkippedSteps(const TrainedModel& model,
                                           const ModelPosition& position) {
  if (position.skipped_steps == 0 || group_.narrowed()) return;
  const std::int64_t most = model.options().max_skipped_steps;
  const std::string what =
      absl::StrCat(model.options().name.empty()
                       ? std::string("loss or gradients")
                       : absl::StrCat("loss or gradients of \"", model.options().name, "\""),
                   " not finite at step ", state_.position.step, ", learning rate ",
                   model.LearningRate(Facts(), position));
  if (position.skipped_steps == 1 && group_.rank() == 0) {
    std::fprintf(stderr, "espalier: %s: the step is skipped\n", what.c_str());
  }
  if (most < 0 || position.skipped_steps <= most) return;
  const std::string failure =
      most == 0 ? what : absl::StrCat(what, ", and the ", most, " steps before it");
  trial_.finish_group({.value = std::nullopt, .failure = failure});
  if (group_.rank() != 0) EndProcess(0);
  EndProcess(absl::AbortedError(absl::StrCat(failure, ": the trial fails")), 1);
}

// ---- what the service and the batch size are decided by -----------------------------------------

void TrainingEngine::MeasureTimes() {
  const TrainingPosition& p = state_.position;
  times_.optimizer_time_s = SecondsBetween(microbatch_start_, Clock::now());
  DeviceStepTimes::Step step{.times = times_};
  step.usual = plan_->samples == p.batch_size && !plan_->microbatches.empty();
  if (step.usual) {
    step.shape = {group_.nodes(), group_.whole_size(), plan_->microbatches.front().size};
  }
  std::vector<DeviceStepTimes::Step> known;
  if (device_times_) {
    known = device_times_->EndStep(step);
  } else {
    known.push_back(step);
  }
  for (const DeviceStepTimes::Step& each : known) {
    device_step_ = each;
    group_.ExpectStepTime(each.times.accumulation_time_s + each.times.optimizer_time_s);
    if (each.usual) profile_.Add(each.shape, each.times);
  }
}

void TrainingEngine::SendProgress() {
  const TrainingPosition& p = state_.position;
  const StepPlan plan = PlanStep(0, std::max(order_->size(), p.batch_size), p.batch_size, 0,
                                 group_.whole_size(), MaxAtomic());
  const auto initial = static_cast<double>(bounds_.initial);
  const GradientNoise noise = p.Noise(initial);
  ReplicaProgress message;
  message.generation = trial_.generation;
  message.step = p.step;
  message.progress = p.progress;
  message.epoch = static_cast<double>(p.epoch) +
                  static_cast<double>(p.cursor) / static_cast<double>(order_->size());
  message.global_batch_size = p.batch_size;
  message.noise = noise;
  message.profile = profile_.Take();
  message.replica_times = std::exchange(replica_times_, {});
  for (std::size_t rank = 0; rank < message.replica_times.size(); ++rank) {
    message.replica_times[rank].replica = group_.members()[rank];
  }
  const double scale = static_cast<double>(p.batch_size) / initial;
  const double throughput = trained_samples_ / SecondsBetween(last_progress_, Clock::now());
  TrainingFigures& figures = message.figures;
  figures[Figure::kAtomicBatchSize] = static_cast<double>(plan.microbatches.front().size);
  figures[Figure::kAccumulationSteps] = static_cast<double>(plan.microbatches.size()) - 1;
  if (!models_.empty()) {
    figures[Figure::kLearningRate] = models_.front()->LearningRate(Facts(), p.models.front());
    figures[Figure::kLossScale] = p.models.front().loss_scale;
  }
  figures[Figure::kGoodput] = throughput * Gain(noise.sqr, noise.var, scale) / scale;
  figures[Figure::kMemory] = static_cast<double>(ResidentMemory());
  figures[Figure::kDeviceMemory] = static_cast<double>(AllocatedBytes(trial_.device));
  figures[Figure::kSkippedSteps] = static_cast<double>(p.skipped_steps);
  if (tuner_) ProposeBatch(message);
  trial_.control->Send(message);
}

double TrainingEngine::CurrentGain() const {
  const TrainingPosition& p = state_.position;
  const auto initial = static_cast<double>(bounds_.initial);
  if (initial <= 0) return 1;
  const GradientNoise noise = p.Noise(initial);
  return Gain(noise.sqr, noise.var, static_cast<double>(p.batch_size) / initial);
}

void TrainingEngine::ProposeBatch(const ReplicaProgress& message) {
  const TrainingPosition& p = state_.position;
  tuner_->Add(message.profile);
  const bool known = std::any_of(p.models.begin(), p.models.end(), [](const ModelPosition& m) {
    return std::any_of(m.noise.begin(), m.noise.end(),
                       [](const NoiseAverages& n) { return !n.empty(); });
  });
  const GradientNoise noise = known ? message.noise : GradientNoise{};
  const auto choice = tuner_->Choose(group_.nodes(), group_.whole_size(), noise, p.batch_size,
                                     message.figures.Whole(Figure::kAtomicBatchSize));
  if (!choice) return;
  proposed_batch_ = choice->global();
  proposed_atomic_ = choice->atomic_batch_size;
}

}  // namespace espalier
