// TrainingEngine's steps in parts, for programs that run backward and step their optimizers
// themselves.

#include <ATen/core/grad_mode.h>

#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "trial_runner/torch/training_engine.h"

namespace espalier {

std::size_t TrainingEngine::AddSteppedModel(std::unique_ptr<ModelPart> model,
                                            std::unique_ptr<OptimizerPart> optimizer,
                                            const DataParallelOptions& options) {
  const std::size_t number = AddModel(std::move(model), std::move(optimizer), options);
  GradientBuckets& gradients = models_[number]->gradients();
  gradients.AtBackwardsEnd([this, number] { EndBackward(number); });
  gradients.AtFurtherBackward([this, number] { BeginFurtherBackward(number); });
  gradients.Attach();
  return number;
}

bool TrainingEngine::Collects(std::size_t number) const {
  return answer_due_ && !dropped_ && !broken_ && number >= next_model_ &&
         static_cast<std::int64_t>(number) >= state_.position.models_stepped;
}

void TrainingEngine::OpenPasses() {
  passes_.assign(models_.size(), PassState::kOpen);
  const SampleSlice& microbatch = plan_->microbatches[next_microbatch_];
  for (std::size_t i = 0; i < models_.size(); ++i) {
    if (!Collects(i)) continue;
    models_[i]->gradients().AttachIfMoved();
    models_[i]->OpenPass({.weight = plan_->WeightOf(microbatch),
                          .first = next_microbatch_ == 0,
                          .last = InLastMicrobatch()},
                         state_.position.models[i], group_.collectives(), group_.size());
  }
}

void TrainingEngine::HoldGradients(bool on) {
  hold_gradients_ = on;
  if (!on) return;
  for (std::size_t i = 0; i < passes_.size(); ++i) {
    if (Collects(i) && passes_[i] == PassState::kOpen) models_[i]->gradients().HoldBack();
  }
}

void TrainingEngine::EndBackward(std::size_t number) {
  if (!Collects(number) || passes_[number] != PassState::kOpen) return;
  models_[number]->ClosePass();
  passes_[number] = hold_gradients_ ? PassState::kHeld : PassState::kClosed;
  broken_ = group_.Abandoned() || (InLastMicrobatch() && !hold_gradients_ && !ReduceModel(number));
}

void TrainingEngine::BeginFurtherBackward(std::size_t number) {
  if (!Collects(number) || passes_[number] == PassState::kOpen) return;
  models_[number]->gradients().Reopen(InLastMicrobatch() && !hold_gradients_);
  passes_[number] = PassState::kOpen;
}

// There was no backward, or none since those whose gradients were held.
void TrainingEngine::ReduceHeld(std::size_t number) {
  hold_gradients_ = false;
  if (passes_[number] == PassState::kHeld) BeginFurtherBackward(number);
  EndBackward(number);
}

TrainingEngine::StepOutcome TrainingEngine::StepModel(std::size_t number) {
  if (!answer_due_) BadUse("an optimizer was stepped without a batch of the training loader");
  if (number != next_model_) {
    BadUse(absl::StrCat("the optimizer of model \"", models_[number]->options().name,
                        "\" was stepped where that of \"", models_[next_model_]->options().name,
                        "\" was due: each is stepped once for each batch, in the order in which "
                        "they were wrapped"));
  }
  StepOutcome outcome = StepOutcome::kDropped;
  if (!dropped_ && Collects(number)) ReduceHeld(number);
  if (broken_) Regroup(/*broken=*/true);
  if (!dropped_ && Collects(number)) {
    outcome = InLastMicrobatch() ? StepOutcome::kStepped : StepOutcome::kAccumulated;
    if (InLastMicrobatch()) {
      const bool others_skipped = std::exchange(skipped_, false);
      ApplyModel(number);
      if (skipped_) outcome = StepOutcome::kSkipped;
      skipped_ = skipped_ || others_skipped;
    }
  }
  if (++next_model_ < models_.size()) return outcome;
  answer_due_ = false;
  if (!dropped_) EndOfMicrobatch();
  return outcome;
}

void TrainingEngine::EndMicrobatch() {
  if (!answer_due_) return;
  if (broken_) Regroup(/*broken=*/true);  // in a pass after which the program has stepped nothing
  for (; next_model_ < models_.size() && !dropped_; ++next_model_) {
    if (!Collects(next_model_)) continue;
    ReduceHeld(next_model_);
    if (broken_) {
      Regroup(/*broken=*/true);
    } else if (InLastMicrobatch()) {
      models_[next_model_]->DropPrevious();
      ++state_.position.models_stepped;
      skipped_ = true;
      if (next_model_ + 1 == models_.size()) TakeProposal(*models_[next_model_]);
    }
  }
  answer_due_ = false;
  if (!dropped_) EndOfMicrobatch();
}

bool TrainingEngine::SumsOverStep() const {
  return answer_due_ && (group_.size() > 1 || dropped_ || broken_);
}

at::Tensor TrainingEngine::SumOverStep(const at::Tensor& own, bool weighted) {
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
// if the group was lost: then another has formed.
bool TrainingEngine::AgreeWithoutModels() {
  auto pending = std::make_shared<std::vector<double>>(1, group_.Pending() ? 1 : 0);
  if (!group_.AllReduceSum(CollectiveBuffer::Of(pending)).ok()) {
    Regroup(/*broken=*/true);
    return false;
  }
  all_know_ = !group_.narrowed() && std::lround(pending->front()) == group_.size();
  return true;
}

}  // namespace espalier
