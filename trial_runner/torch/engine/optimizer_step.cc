#include "trial_runner/torch/engine/optimizer_step.h"

#include <ATen/Context.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/random.h"
#include "trial_runner/kernels/bit_hash.h"

namespace espalier {

// ---- the trial's models -----------------------------------------------------------------------

std::size_t OptimizerStep::AddModel(std::unique_ptr<ModelPart> model,
                                    std::unique_ptr<OptimizerPart> optimizer,
                                    const DataParallelOptions& options) {
  if (group_.joined()) {
    BadUse(absl::StrCat("AdaptiveDataParallel \"", options.name,
                        "\" was made after training began: make all of them before"));
  }
  auto made = TrainedModel::Make(std::move(model), std::move(optimizer), options,
                                 trial_.bucket_operations, trial_.gradient_kernel);
  if (!made.ok()) EndProcess(made.status(), kBadUseExitCode);
  if (const auto misplaced = MisplacedModel((*made)->what(), (*made)->device(), trial_.device)) {
    std::fprintf(stderr, "espalier: %s\n", misplaced->c_str());
  }
  const absl::Status added = state_.AddModel(options.name, (*made)->model(), (*made)->optimizer());
  if (!added.ok()) EndProcess(added, kBadUseExitCode);
  state_.position.models.push_back((*made)->FirstPosition());
  models_.push_back(*std::move(made));
  backwards_.push_back(0);
  usual_backwards_.push_back(0);
  known_left_out_.push_back(false);
  return models_.size() - 1;
}

void OptimizerStep::StartGroup() {
  check_.StartGroup();
  if (check_.on()) {
    if (state_.kept_buffers.empty()) KeepBuffers();
    NoteChangedBuffers();
  }
  for (const auto& model : models_) model->StartGroup(collectives_.FromDeviceToDevice());
}

void OptimizerStep::DropGradients() {
  for (const auto& model : models_) model->DropGradients();
}

void OptimizerStep::PrepareGradients() {
  for (const auto& model : models_) model->PrepareGradients();
}

// ---- the step and its microbatches ------------------------------------------------------------

void OptimizerStep::Begin(StepPlan plan) {
  plan_ = std::move(plan);
  next_microbatch_ = 0;
  inverse_size_ = 0;
  all_know_ = skipped_ = left_out_part_ = false;
  meter_.BeginStep();
  DrawOwn();
}

// ---- random numbers -----------------------------------------------------------------------------

namespace {

// In place of a rank: no replica has one like these.
constexpr std::uint64_t kAllInStep = ~std::uint64_t{0};
constexpr std::uint64_t kAllBetween = kAllInStep - 1;

}  // namespace

// Differently in each step and replica, and the same again if the step has to be repeated.
void OptimizerStep::DrawOwn() {
  own_draws_ = true;
  std::uint64_t seed =
      MixSeed(MixSeed(trial_.seed, static_cast<std::uint64_t>(state_.position.step)),
              static_cast<std::uint64_t>(group_.rank()));
  // Where others have been drawn meanwhile.
  const std::uint64_t part = (next_microbatch_ << 32) + next_model_;
  if (answer_due_ && part > 0) seed = MixSeed(seed, part);
  at::manual_seed(seed);
}

void OptimizerStep::DrawAlikeInStep() {
  if (!std::exchange(own_draws_, false)) return;
  const auto step = static_cast<std::uint64_t>(state_.position.step);
  at::manual_seed(MixSeed(MixSeed(MixSeed(trial_.seed, step), kAllInStep), next_model_));
}

void OptimizerStep::DrawAlike() {
  own_draws_ = false;
  const TrainingPosition& p = state_.position;
  std::uint64_t seed = MixSeed(trial_.seed, kAllBetween);
  for (const std::int64_t part : {p.step, p.epoch, p.evaluations}) {
    seed = MixSeed(seed, static_cast<std::uint64_t>(part));
  }
  at::manual_seed(seed);
  seed_of_all_ = seed;
}

// ---- microbatches -------------------------------------------------------------------------------

void OptimizerStep::BeginMicrobatch() {
  answer_due_ = true;
  dropped_ = broken_ = hold_gradients_ = false;
  state_.sums.BeginMicrobatch();
  next_model_ = 0;
  std::fill(backwards_.begin(), backwards_.end(), 0);
  std::fill(known_left_out_.begin(), known_left_out_.end(), false);
  if (!own_draws_) DrawOwn();  // an evaluation came between two of a step
  inverse_size_ += 1.0 / static_cast<double>(plan_->microbatches[next_microbatch_].size);
  meter_.BeginMicrobatch(InLastMicrobatch());
}

OptimizerStep::Progress OptimizerStep::Backward(std::size_t number, const at::Tensor& loss) {
  if (!answer_due_) BadUse("Step was called without a microbatch from NextBatch");
  if (number != next_model_) {
    BadUse(
        absl::StrCat("Step was called for model \"", models_[number]->options().name,
                     "\" where it was due for \"", models_[next_model_]->options().name,
                     "\": each is called once for each microbatch, in the order they were made"));
  }
  answer_due_ = ++next_model_ < models_.size();
  if (rehearsing_) {
    models_[number]->Rehearse(loss, state_.position.models[number], collectives_);
    return Progress::kUnderWay;
  }
  if (dropped_) return Progress::kUnderWay;
  const SampleSlice& microbatch = plan_->microbatches[next_microbatch_];
  const bool last = InLastMicrobatch();
  const auto count = static_cast<std::int64_t>(number);
  // A group that was lost between two models' steps goes on with the second one's.
  if (count >= state_.position.models_stepped) {
    models_[number]->RefuseUnfrozen();
    models_[number]->DeferHooks();
    models_[number]->Backward(
        loss, {.weight = plan_->WeightOf(microbatch), .first = next_microbatch_ == 0, .last = last},
        state_.position.models[number], group_.collectives(), group_.size());
    if (group_.Abandoned() || (last && !ReduceModel(number))) return Progress::kGroupLost;
    if (last) IsLeftOut(number) ? PassOver(number) : ApplyModel(number);
    if (last && answer_due_) DrawOwn();
  }
  return EndModel();
}

OptimizerStep::Progress OptimizerStep::EndModel() {
  return answer_due_ || dropped_ || rehearsing_ ? Progress::kUnderWay : EndMicrobatch();
}

OptimizerStep::Progress OptimizerStep::EndMicrobatch() {
  if (!InLastMicrobatch()) {
    ++next_microbatch_;
    meter_.EndMicrobatch();
    return Progress::kUnderWay;
  }
  return models_.empty() && !AgreeWithoutModels() ? Progress::kGroupLost : Progress::kDone;
}

void OptimizerStep::Finish() {
  TrainingPosition& p = state_.position;
  MeasureStep();
  ++p.step;
  p.models_stepped = 0;
  p.cursor += plan_->samples;
  state_.sums.CountStep();
  if (skipped_) {
    ++p.skipped_steps;
  } else {
    last_gain_ = batches_.GainOf(static_cast<double>(plan_->samples), p);
    p.progress += last_gain_;
  }
  trial_.progress = p.progress;
  plan_.reset();
  DrawAlike();
  if (skipped_) FailAfterSkippedSteps();
}

void OptimizerStep::Drop(bool lost) {
  broken_ = disagreed_ = false;
  Settle();
  meter_.DropStep();
  if (lost) {
    dropped_ = true;
    for (const auto& model : models_) model->Renew();
  }
  plan_.reset();
}

void OptimizerStep::Settle() {
  TrainingPosition& p = state_.position;
  bool skipped = false;
  for (std::size_t i = 0; i < models_.size(); ++i) {
    if (!models_[i]->Settle(p.models[i])) skipped = true;
  }
  if (!skipped) return;
  ++p.skipped_steps;
  p.progress -= last_gain_;
  FailAfterSkippedSteps();
}

void OptimizerStep::FailAfterSkippedSteps() {
  for (std::size_t i = 0; i < models_.size(); ++i) {
    FailAfterSkippedSteps(*models_[i], state_.position.models[i]);
  }
}

void OptimizerStep::FailAfterSkippedSteps(const TrainedModel& model,
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

TrainedModel::StepFacts OptimizerStep::Facts() const {
  const TrainingPosition& p = state_.position;
  return {.samples = static_cast<double>(plan_ ? plan_->samples : p.batch_size),
          .batch_size = static_cast<double>(p.batch_size),
          .initial_batch = static_cast<double>(batches_.bounds().initial),
          .progress = p.progress,
          .dataset_size = static_cast<double>(batches_.epoch_size())};
}

double OptimizerStep::LearningRate() const {
  return models_.front()->LearningRate(Facts(), state_.position.models.front());
}

// ---- what goes with the gradients -------------------------------------------------------------

void OptimizerStep::FillTail(std::size_t number) {
  TrainedModel& model = *models_[number];
  GradientBuckets& gradients = model.gradients();
  gradients.SetTail(GradientBuckets::kPending, group_.Pending() ? 1 : 0);
  gradients.SetTail(GradientBuckets::kInverseSize, inverse_size_);
  gradients.SetTail(GradientBuckets::kMicrobatches,
                    static_cast<double>(plan_->microbatches.size()));
  gradients.SetTail(GradientBuckets::kNonFiniteLoss,
                    static_cast<double>(model.non_finite_losses()));
  gradients.SetTail(GradientBuckets::kLeftOut, leaving_ == number ? 1 : 0);
  gradients.SetTail(GradientBuckets::kLeftOutPart, leaving_ != number && left_out_part_ ? 1 : 0);
  gradients.SetTail(GradientBuckets::kLeftOutLate, left_late_ ? 1 : 0);
  if (number == 0 && group_.size() > 1 && check_.on()) check_.Fill(gradients, state_.position);
  const auto proposed = group_.rank() == 0 ? batches_.proposal() : BatchPlanner::Proposal{};
  gradients.SetTail(GradientBuckets::kNextBatch, static_cast<double>(proposed.batch_size));
  gradients.SetTail(GradientBuckets::kNextAtomic, static_cast<double>(proposed.atomic_batch_size));
  gradients.SetComputeTime(group_.rank(), meter_.ComputeTime());
}

bool OptimizerStep::ReduceModel(std::size_t number) {
  TrainedModel& model = *models_[number];
  if (!model.kept()) FillTail(number);
  meter_.BeginSync();
  if (!model.Reduce().ok()) return false;
  meter_.EndSync();
  left_late_ = false;
  if (model.kept()) return true;
  known_left_out_[number] = IsLeftOut(number);
  const double late = model.gradients().tail(GradientBuckets::kLeftOutLate);
  disagreed_ = late > 0 && late < group_.size();
  if (disagreed_) return false;
  if (number > 0 || group_.size() == 1 || !check_.on()) return true;
  if (Parts(number)) return true;  // what their programs have set is to be agreed on first
  if (!check_.Agree(model.gradients(), group_.size(), state_.position))
    return FailWhereUnlike().ok();
  CountCheck();
  return true;
}

// Of the model's step, after its sums: by whatever member.
bool OptimizerStep::IsLeftOut(std::size_t number) const {
  const GradientBuckets& gradients = models_[number]->gradients();
  if (known_left_out_[number]) return true;
  return !models_[number]->kept() &&
         gradients.tail(GradientBuckets::kLeftOut) + gradients.tail(GradientBuckets::kLeftOutPart) >
             0;
}

// Whether some members' programs do not come to the model's step, and others' do.
bool OptimizerStep::Parts(std::size_t number) const {
  if (models_[number]->kept()) return false;
  const double leaving = models_[number]->gradients().tail(GradientBuckets::kLeftOut);
  return leaving > 0 && leaving < group_.size();
}

// The program has come to the model's step, which is not taken, by any member.
void OptimizerStep::PassOver(std::size_t number) {
  parted_ = parted_ || Parts(number);
  LeaveOutModel(number);
}

void OptimizerStep::LeaveOutModel(std::size_t number) {
  models_[number]->DropPrevious();
  ++state_.position.models_stepped;
  skipped_ = true;
  if (number + 1 == models_.size()) TakeProposal(*models_[number]);
}

void OptimizerStep::ApplyModel(std::size_t number, double loss_scale) {
  TrainedModel& model = *models_[number];
  TrainingPosition& p = state_.position;
  if (number == 0) Settle();  // the step before
  DrawAlikeInStep();
  TrainedModel::StepFacts facts = Facts();
  facts.loss_scale = loss_scale;
  if (!model.Apply(facts, p.models[number])) skipped_ = true;
  ++p.models_stepped;
  if (number + 1 == models_.size()) TakeProposal(model);
}

// What the last model's all-reduce brought beside gradients.
void OptimizerStep::TakeProposal(const TrainedModel& model) {
  const int size = group_.size();
  const GradientBuckets& gradients = model.gradients();
  for (int rank = 0; rank < size; ++rank) {
    meter_.AddComputeTime(rank, size,
                          model.kept() ? meter_.ComputeTime() : gradients.compute_time_s(rank));
  }
  const auto told = [&](auto place) { return std::lround(gradients.tail(place)); };
  all_know_ = model.kept() ? group_.Pending() : told(GradientBuckets::kPending) == size;
  all_know_ = all_know_ && !group_.narrowed();
  const BatchPlanner::Proposal agreed =
      model.kept()
          ? batches_.proposal()
          : BatchPlanner::Proposal{.batch_size = told(GradientBuckets::kNextBatch),
                                   .atomic_batch_size = told(GradientBuckets::kNextAtomic)};
  if (!batches_.Adopt(agreed, state_.position)) return;
  for (const auto& each : models_) each->DropPrevious();
}

void OptimizerStep::MeasureStep() {
  std::optional<ProfileKey> shape;
  if (plan_->samples == state_.position.batch_size && !plan_->microbatches.empty()) {
    shape = {group_.nodes(), group_.whole_size(), plan_->microbatches.front().size};
  }
  group_.EndStep(meter_.EndStep(shape, static_cast<double>(plan_->samples)));
}

}  // namespace espalier
