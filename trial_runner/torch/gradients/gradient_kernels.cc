// GradientBuckets on devices that our kernel runs on: gradients are read once where they are
// folded, and once where they are measured.

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>

#include <string>
#include <utility>

#include "trial_runner/torch/gradients/gradient_buckets.h"

namespace espalier {

// The parameter's gradient, but for where it lies. `held` is to live until the sums are begun: the
// device does what comes later, also in memory that is given back then, behind them.
GradientPiece GradientBuckets::PieceOf(std::size_t index, std::vector<at::Tensor>& held) const {
  GradientPiece piece{.count = parameters_[index].tensor.numel(),
                      .group = static_cast<std::int32_t>(parameters_[index].group)};
  if (preconditioners_.empty() || !preconditioners_[index].second_moment.defined()) return piece;
  const Preconditioner& p = preconditioners_[index];
  held.push_back(InMemorysOrder(p.second_moment, index));
  piece.scale = {held.back().const_data_ptr<float>(), static_cast<float>(p.factor),
                 static_cast<float>(p.epsilon)};
  return piece;
}

// An error becomes an exception, as LibTorch's operations have them.
void GradientBuckets::Run(GradientSums& sums) const {
  sums.groups = static_cast<std::int64_t>(groups_);
  at::Tensor partials;
  if (sums.wanted > 0) {
    const auto bytes = static_cast<std::int64_t>(sizeof(GradientPartial));
    partials = at::empty({GradientBlocks(sums.pieces) * bytes}, memory_.options().dtype(at::kByte));
    sums.partials = static_cast<GradientPartial*>(partials.mutable_data_ptr());
  }
  const absl::Status begun = kernel_(sums, device_.is_cpu() ? -1 : device_.index());
  TORCH_CHECK(begun.ok(), std::string(begun.message()));
}

void GradientBuckets::FoldBucketByKernel(const Bucket& bucket) {
  GradientSums sums{.weight = static_cast<float>(pass_.weight), .add = !pass_.first};
  std::vector<at::Tensor> held;
  for (const std::size_t i : bucket.parameters) {
    const at::Tensor gradient = std::exchange(waiting_[i], {});
    if (!gradient.defined()) continue;  // End() sees to what no gradient came to
    GradientPiece piece = PieceOf(i, held);
    held.push_back(InMemorysOrder(gradient, i));
    piece.gradient = held.back().const_data_ptr<float>();
    piece.folded = memory_.mutable_data_ptr<float>() + offsets_[i];
    sums.pieces.push_back(piece);
  }
  if (sums.pieces.empty()) return;
  if (!pass_.keep) {  // else it is measured when it is complete
    sums.wanted = static_cast<std::int64_t>(groups_);
    sums.sums = group_sqr_.mutable_data_ptr<float>();
    sums.factor = static_cast<float>(pass_.norm_factor);
    sums.add_sums = true;
  }
  Run(sums);
}

at::Tensor GradientBuckets::StepSumsByKernel() const {
  const at::NoGradGuard no_grad;
  const auto* const now = memory_.const_data_ptr<float>();
  const at::Tensor& previous = previous_memory_.tensor;
  const float* const before = previous.defined() ? previous.const_data_ptr<float>() : nullptr;
  GradientSums sums;
  std::vector<at::Tensor> held;
  const auto add = [&](GradientPiece piece, std::int64_t begin) {
    piece.gradient = now + begin;
    if (before != nullptr) piece.previous = before + begin;
    sums.pieces.push_back(piece);
  };
  if (preconditioners_.empty()) {
    for (const Range& range : ranges_) {
      add({.count = range.end - range.begin, .group = static_cast<std::int32_t>(range.group)},
          range.begin);
    }
  } else {
    for (std::size_t i = parameters_.size(); i-- > 0;) add(PieceOf(i, held), offsets_[i]);
  }
  sums.wanted = static_cast<std::int64_t>(3 * groups_ + 1);
  at::Tensor into = at::empty({sums.wanted}, memory_.options());
  sums.sums = into.mutable_data_ptr<float>();
  Run(sums);
  return into;
}

}  // namespace espalier
