// GradientBuckets' gradients that come more than once in a step: within one backward pass, in a
// further one, or again after the program has zeroed them.

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include <stdexcept>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status.h"
#include "trial_runner/torch/gradients/gradient_buckets.h"

namespace espalier {
namespace {

[[noreturn]] void RefuseSetToNone(const GradientBuckets::Parameter& parameter) {
  throw std::invalid_argument(absl::StrCat(
      "espalier: the gradient of parameter \"", parameter.name,
      "\" was set to None between two backward passes of a batch, and the batches before it of the "
      "same step are in it: want zero_grad() of the optimizer or of the AdaptiveDataParallel "
      "there, "
      "in every batch"));
}

}  // namespace

// ---- within one backward pass -----------------------------------------------------------------

void GradientBuckets::AddLate(std::size_t index, const at::Tensor& gradient) {
  const at::NoGradGuard no_grad;
  if (!late_.defined()) {
    late_ = at::zeros({size_}, at::TensorOptions(at::kFloat).device(device_));
  }
  late_.narrow(0, offsets_[index], parameters_[index].tensor.numel())
      .add_(Flat(gradient, index), pass_.weight);
}

// As long as no bucket is under way.
void GradientBuckets::FoldLate() {
  if (!late_.defined() || next_bucket_ > 0) return;
  const at::NoGradGuard no_grad;
  memory_.narrow(0, 0, size_).add_(late_);
  late_ = at::Tensor();
}

// All replicas, once the tail has told that some of them have such gradients.
absl::Status GradientBuckets::ReduceLate() {
  if (tail(kLate) == 0) return absl::OkStatus();
  at::Tensor late = std::exchange(late_, {});
  if (!late.defined()) late = at::zeros({size_}, at::TensorOptions(at::kFloat).device(device_));
  ESPALIER_RETURN_IF_ERROR(collectives_->AllReduceSum(
      {.type = CollectiveBuffer::Type::kFloat,
       .start = late.mutable_data_ptr<float>(),
       .count = size_,
       .device = device_.is_cpu() ? CollectiveBuffer::kHost : device_.index(),
       .owner = std::make_shared<at::Tensor>(late)}));
  const at::NoGradGuard no_grad;
  memory_.narrow(0, 0, size_).add_(late);
  return absl::OkStatus();
}

// ---- in a further one, or after they were zeroed ----------------------------------------------

void GradientBuckets::Reopen(bool last) {
  ESPALIER_CHECK(!open_, "the pass is closed");
  open_ = true;
  in_parts_ = true;
  end_awaited_ = false;
  // Kept gradients are where autograd adds to them.
  if (pass_.keep && on_host()) return;
  const bool set_aside = reduced_ || pass_.keep;
  pass_.first = set_aside && first_pass_;
  came_.assign(parameters_.size(), false);
  if (set_aside) {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (used_[i] && !parameters_[i].tensor.grad().defined() && !DropReduced(i)) {
        RefuseSetToNone(parameters_[i]);
      }
    }
    earlier_ = std::exchange(memory_, at::Tensor());
    earlier_used_ = used_;
    MakeMemory();
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      // Of a parameter whose sums were dropped, this replica's from earlier passes still count.
      used_[i] = before_.defined() && before_used_[i] && !earlier_used_[i];
      if (used_[i]) SliceOf(memory_, i).copy_(SliceOf(before_, i));
      // Where nothing is set aside, hooks have taken theirs, and what is there the program has set.
      parameters_[i].tensor.mutable_grad().reset();
    }
    reduced_ = false;
  }
  pass_.last = last;
  for (Bucket& bucket : buckets_) bucket.missing = bucket.parameters.size();
  next_bucket_ = 0;
}

bool GradientBuckets::Zero(const std::vector<std::size_t>& parameters) {
  const at::NoGradGuard no_grad;
  for (const std::size_t i : parameters) {
    parameters_[i].tensor.mutable_grad().reset();
    if (open_ || !used_[i]) continue;
    in_parts_ = zeroes_ = true;
    if (reduced_ || pass_.keep ? !DropReduced(i) : !DropUnreduced(i)) return false;
  }
  return true;
}

// The sums over the replicas, or the kept pass: all that the program has seen of it.
bool GradientBuckets::DropReduced(std::size_t index) {
  if (!first_pass_ && !before_.defined()) return false;
  used_[index] = false;
  if (!pass_.keep || !on_host()) SliceOf(memory_, index).zero_();
  return true;
}

bool GradientBuckets::DropUnreduced(std::size_t index) {
  if (!first_pass_ && !before_.defined()) return false;
  const at::Tensor sums = SliceOf(memory_, index);
  used_[index] = !first_pass_ && before_used_[index];
  used_[index] ? sums.copy_(SliceOf(before_, index)) : sums.zero_();
  return true;
}

void GradientBuckets::AddEarlier() {
  if (!earlier_.defined()) return;
  const at::NoGradGuard no_grad;
  memory_.narrow(0, 0, size_).add_(earlier_.narrow(0, 0, size_));
  for (std::size_t i = 0; i < used_.size(); ++i) used_[i] = used_[i] || earlier_used_[i];
  earlier_ = at::Tensor();
}

}  // namespace espalier
