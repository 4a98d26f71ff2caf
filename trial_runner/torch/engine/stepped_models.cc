// OptimizerStep's steps in parts, for programs that run backward and step their optimizers
// themselves.

#include <ATen/core/grad_mode.h>

#include <cmath>
#include <cstdio>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "trial_runner/torch/engine/optimizer_step.h"

namespace espalier {
namespace {

// To a program that accumulates gradients over batches by itself, say.
void SayUnstepped(std::int64_t step) {
  std::fprintf(stderr,
               "espalier: step %lld: a batch has ended without a step() of each of its optimizers: "
               "the gradients of its backward are dropped, and the step counts as skipped. "
               "Gradients do not add up over batches. To accumulate, give AdaptiveDataLoader the "
               "larger batch_size, and in local_bsz_bounds=(None, N) the most samples of one "
               "forward pass: it cuts each batch into such pieces. Then run backward and step() "
               "for each of them: the optimizer is stepped with the last one\n",
               static_cast<long long>(step));
}

}  // namespace

std::size_t OptimizerStep::AddSteppedModel(std::unique_ptr<ModelPart> model,
                                           std::unique_ptr<OptimizerPart> optimizer,
                                           const DataParallelOptions& options) {
  const std::size_t number = AddModel(std::move(model), std::move(optimizer), options);
  program_steps_ = true;
  GradientBuckets& gradients = models_[number]->gradients();
  gradients.AtBackwardsEnd([this, number] { EndBackward(number); });
  gradients.AtFurtherBackward([this, number] { BeginFurtherBackward(number); });
  gradients.Attach();
  return number;
}

bool OptimizerStep::Collects(std::size_t number) const {
  return answer_due_ && !dropped_ && !broken_ && number >= next_model_ &&
         static_cast<std::int64_t>(number) >= state_.position.models_stepped;
}

void OptimizerStep::OpenPasses() {
  passes_.assign(models_.size(), PassState::kOpen);
  const SampleSlice& microbatch = plan_->microbatches[next_microbatch_];
  for (std::size_t i = 0; i < models_.size(); ++i) {
    if (!Collects(i)) continue;
    models_[i]->RefuseUnfrozen();
    models_[i]->DeferHooks();
    models_[i]->OpenPass({.weight = plan_->WeightOf(microbatch),
                          .first = next_microbatch_ == 0,
                          .last = InLastMicrobatch()},
                         state_.position.models[i], group_.collectives(), group_.size());
  }
}

void OptimizerStep::HoldGradients(bool on) {
  hold_gradients_ = on;
  if (!on) return;
  for (std::size_t i = 0; i < passes_.size(); ++i) {
    if (Holds(i) && Collects(i) && passes_[i] == PassState::kOpen) {
      models_[i]->gradients().HoldBack();
    }
  }
}

bool OptimizerStep::Holds(std::size_t number) const {
  return hold_gradients_ && !models_[number]->has_hooks();
}

void OptimizerStep::EndBackward(std::size_t number) {
  if (!Collects(number) || passes_[number] != PassState::kOpen) return;
  models_[number]->ClosePass();
  passes_[number] = Holds(number) ? PassState::kHeld : PassState::kClosed;
  if (rehearsing_) return;
  // What is drawn for the samples of the next backward pass of the same step is each member's own.
  if (InLastMicrobatch() && ++backwards_[number] >= usual_backwards_[number]) DrawAlikeInStep();
  broken_ = group_.Abandoned() || (InLastMicrobatch() && !Holds(number) && !ReduceModel(number));
}

void OptimizerStep::EndBackwards() {
  for (std::size_t i = 0; i < passes_.size(); ++i) {
    if (models_[i]->gradients().any_came()) EndBackward(i);
  }
}

bool OptimizerStep::DefersHooks(std::size_t number) const {
  return !rehearsing_ && Collects(number) && passes_[number] == PassState::kOpen &&
         !models_[number]->kept();
}

void OptimizerStep::BeginFurtherBackward(std::size_t number) {
  if (!Collects(number) || passes_[number] == PassState::kOpen) return;
  if (known_left_out_[number]) return;  // what it brings is nobody's
  TrainedModel& model = *models_[number];
  model.RefuseSetSinceClosed();
  if (model.has_hooks() && plan_ && plan_->microbatches.size() > 1) {
    BadUse(absl::StrCat(
        model.what(),
        ": a batch has several backward passes, and comes in several pieces: what a hook by "
        "register_hook makes of each pass's gradient cannot be added up over the pieces. Want one "
        "backward pass of the sum of the losses, or pieces that are whole batches"));
  }
  model.gradients().Reopen(!rehearsing_ && InLastMicrobatch() && !Holds(number));
  passes_[number] = PassState::kOpen;
}

void OptimizerStep::ZeroGradients(std::size_t number, const std::vector<std::size_t>& parameters) {
  TrainedModel& model = *models_[number];
  if (!Collects(number)) {
    model.ResetGradients(parameters);
  } else if (!model.gradients().Zero(parameters)) {
    BadUse(absl::StrCat(
        model.what(),
        ": zero_grad() was called between two backward passes of a batch, for the first time and "
        "not in the first batch of its step, whose gradients are added up already: want it in "
        "every batch, or gradients that are not left there: requires_grad_(False) meanwhile, or "
        "torch.autograd.grad"));
  }
}

// There was no backward, or none since those whose gradients were held.
void OptimizerStep::ReduceHeld(std::size_t number) {
  models_[number]->RefuseUnfrozen();
  hold_gradients_ = false;
  if (passes_[number] == PassState::kClosed && !known_left_out_[number]) {
    models_[number]->RefuseSetSinceClosed();
  }
  if (passes_[number] == PassState::kHeld) BeginFurtherBackward(number);
  EndBackward(number);
}

bool OptimizerStep::CloseModel(std::size_t number) {
  if (!answer_due_) {
    BadUse(
        "an optimizer was stepped without a batch of the training loader: step it once for each, "
        "within the loop over it. An evaluation or synchronized() ends the batch: want it after "
        "the step");
  }
  if (number != next_model_) {
    BadUse(absl::StrCat("the optimizer of model \"", models_[number]->options().name,
                        "\" was stepped where that of \"", models_[next_model_]->options().name,
                        "\" was due: each is stepped once for each batch, in the order in which "
                        "they were wrapped"));
  }
  if (!rehearsing_ && !dropped_ && Collects(number)) ReduceHeld(number);
  return !broken_;
}

OptimizerStep::ModelOutcome OptimizerStep::StepModel(std::size_t number, double loss_scale) {
  ModelOutcome outcome = ModelOutcome::kDropped;
  if (!rehearsing_ && Collects(number)) {
    outcome = InLastMicrobatch() ? ModelOutcome::kStepped : ModelOutcome::kAccumulated;
    if (InLastMicrobatch()) {
      usual_backwards_[number] = backwards_[number];
      const bool others_skipped = std::exchange(skipped_, false);
      const bool left_out = IsLeftOut(number);
      left_out ? PassOver(number) : ApplyModel(number, loss_scale);
      if (skipped_) outcome = left_out ? ModelOutcome::kLeftOut : ModelOutcome::kSkipped;
      skipped_ = skipped_ || others_skipped;
    }
  }
  EndPartOfModel();
  return outcome;
}

OptimizerStep::ModelOutcome OptimizerStep::PassOverModel(std::size_t number) {
  ModelOutcome outcome = ModelOutcome::kDropped;
  if (!rehearsing_ && Collects(number)) {
    outcome = InLastMicrobatch() ? ModelOutcome::kSkipped : ModelOutcome::kAccumulated;
    if (InLastMicrobatch()) {
      usual_backwards_[number] = backwards_[number];
      if (IsLeftOut(number)) outcome = ModelOutcome::kLeftOut;
      PassOver(number);
    }
  }
  EndPartOfModel();
  return outcome;
}

void OptimizerStep::EndPartOfModel() {
  answer_due_ = ++next_model_ < models_.size();
  if (answer_due_ && !own_draws_ && !rehearsing_) DrawOwn();
}

void OptimizerStep::LeaveOutMicrobatch() {
  if (plan_ && !rehearsing_) left_out_part_ = true;  // else it is dealt again
}

bool OptimizerStep::LeaveOut() {
  if (!answer_due_ || rehearsing_) return true;
  if (!program_steps_) OpenPasses();
  // What the program does not want in its step, in no model's, it would not want of a whole batch.
  bool nothing_came = next_model_ == 0 && !dropped_ && !broken_;
  for (std::size_t i = 0; i < models_.size(); ++i) {
    const bool none = passes_[i] == PassState::kOpen && !models_[i]->gradients().any_came();
    nothing_came = nothing_came && none;
  }
  if (nothing_came && !InLastMicrobatch()) left_out_part_ = true;
  // Of several models some may have steps of their own: a critic has more than its generator.
  const bool none_stepped = next_model_ == 0 && state_.position.models_stepped == 0;
  for (; next_model_ < models_.size() && !dropped_; ++next_model_) {
    if (broken_) return false;  // maybe in a pass after which the program has stepped nothing
    if (!Collects(next_model_)) continue;
    const bool late = passes_[next_model_] == PassState::kClosed;  // its gradients are summed
    leaving_ = next_model_;
    ReduceHeld(next_model_);
    leaving_.reset();
    if (broken_) return false;
    if (!InLastMicrobatch()) continue;
    TrainedModel& model = *models_[next_model_];
    if (none_stepped && group_.rank() == 0 && model.HasFiniteGradients()) {
      if (!std::exchange(unstepped_said_, true)) SayUnstepped(state_.position.step + 1);
    }
    const bool parts = Parts(next_model_);
    const bool left_late = late && !model.kept() && !IsLeftOut(next_model_);
    // This member's state is what the others go on from.
    if (left_late || (parts && !late)) ++state_.position.left_out;
    left_late_ = left_late_ || left_late;
    parted_ = parted_ || parts;
    LeaveOutModel(next_model_);
  }
  return !broken_;
}

OptimizerStep::Progress OptimizerStep::EndPasses() {
  if (!answer_due_ || rehearsing_) return Progress::kUnderWay;
  answer_due_ = false;
  return EndModel();
}

bool OptimizerStep::SumsOverStep() const {
  return answer_due_ && (group_.size() > 1 || dropped_ || broken_);
}

at::Tensor OptimizerStep::SumOverStep(const at::Tensor& own, bool weighted) {
  if (!SumsOverStep() || dropped_ || broken_) return own.clone();
  if (own.scalar_type() != at::kDouble) BadUse("SumOverStep sums doubles");
  const at::NoGradGuard no_grad;
  const double weight = weighted ? plan_->WeightOf(plan_->microbatches[next_microbatch_]) : 1;
  const auto sums = std::make_shared<at::Tensor>(own.mul(weight).contiguous());
  const absl::Status summed =
      group_.AllReduceSum({.type = CollectiveBuffer::Type::kDouble,
                           .start = sums->mutable_data_ptr<double>(),
                           .count = sums->numel(),
                           .device = own.is_cuda() ? own.device().index() : CollectiveBuffer::kHost,
                           .owner = sums});
  if (!summed.ok()) {
    broken_ = true;
    return own.clone();
  }
  return sums->div(weight);
}

// A program that only reads its data has no gradients in which to say what others must know. False
// if the group is lost.
bool OptimizerStep::AgreeWithoutModels() {
  auto pending = std::make_shared<std::vector<double>>(1, group_.Pending() ? 1 : 0);
  if (!group_.AllReduceSum(CollectiveBuffer::Of(pending)).ok()) return false;
  all_know_ = !group_.narrowed() && std::lround(pending->front()) == group_.size();
  return true;
}

}  // namespace espalier
