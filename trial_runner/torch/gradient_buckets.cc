#include "trial_runner/torch/gradient_buckets.h"

#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/dot.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "trial_runner/torch/norm_kernels.h"
#include "tuner/base/check.h"

namespace espalier {
namespace {

// The ranks whose compute times fit into the tail before it has to grow.
constexpr int kUsualReplicas = 64;

ElementScale ScaleAt(const std::vector<Preconditioner>& preconditioners, std::size_t index) {
  if (preconditioners.empty() || !preconditioners[index].second_moment.defined()) return {};
  const Preconditioner& p = preconditioners[index];
  return {p.second_moment.const_data_ptr<float>(), static_cast<float>(p.factor),
          static_cast<float>(p.epsilon)};
}

std::size_t Count(const at::Tensor& tensor) { return static_cast<std::size_t>(tensor.numel()); }

}  // namespace

// Called by autograd when a parameter's gradient is complete.
struct GradientBuckets::Hook : torch::autograd::FunctionPostHook {
  Hook(GradientBuckets& buckets, std::size_t parameter) : owner(buckets), index(parameter) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                            const torch::autograd::variable_list&) override {
    owner.OnReady(index);
    return outputs;
  }
  GradientBuckets& owner;
  const std::size_t index;
};

GradientBuckets::GradientBuckets(std::vector<Parameter> parameters, std::size_t groups,
                                 std::int64_t bucket_bytes)
    : parameters_(std::move(parameters)),
      groups_(groups),
      offsets_(parameters_.size()),
      device_(parameters_.front().tensor.device()),
      local_sqr_(groups),
      used_(parameters_.size()),
      waiting_(parameters_.size()) {
  const std::int64_t most = std::max<std::int64_t>(bucket_bytes / 4, 1);
  for (std::size_t i = parameters_.size(); i-- > 0;) {
    const std::int64_t count = parameters_[i].tensor.numel();
    if (buckets_.empty() ||
        (size_ > buckets_.back().begin && size_ + count - buckets_.back().begin > most)) {
      buckets_.push_back({size_, size_, {}, 0});
    }
    offsets_[i] = size_;
    size_ += count;
    buckets_.back().end = size_;
    buckets_.back().parameters.push_back(i);
  }
  Attach();
}

GradientBuckets::~GradientBuckets() { Detach(); }

void GradientBuckets::Attach() {
  Detach();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    accumulators_.push_back(torch::autograd::impl::grad_accumulator(parameters_[i].tensor));
    hooks_.push_back(accumulators_.back()->add_post_hook(std::make_unique<Hook>(*this, i)));
  }
}

void GradientBuckets::Detach() {
  for (std::size_t i = 0; i < hooks_.size(); ++i) accumulators_[i]->del_post_hook(hooks_[i]);
  accumulators_.clear();
  hooks_.clear();
}

std::int64_t GradientBuckets::TailSize() const {
  return kFixedTail + static_cast<std::int64_t>(groups_ + parameters_.size()) +
         std::max(replicas_, kUsualReplicas);
}

void GradientBuckets::MakeMemory() {
  memory_ = at::zeros({size_ + TailSize()}, at::TensorOptions(at::kFloat).device(device_));
  tail_.assign(static_cast<std::size_t>(TailSize()), 0);
  if (!device_.is_cpu()) {
    device_sqr_ = at::zeros({static_cast<std::int64_t>(groups_)},
                            at::TensorOptions(at::kFloat).device(device_));
  }
}

void GradientBuckets::Renew() {
  memory_ = at::Tensor();
  previous_.clear();
}

at::Tensor GradientBuckets::SliceOf(std::size_t index) const {
  const at::Tensor& p = parameters_[index].tensor;
  return memory_.narrow(0, offsets_[index], p.numel()).view(p.sizes());
}

// ---- one pass ---------------------------------------------------------------------------------

void GradientBuckets::Begin(const Pass& pass, Collectives& collectives, int replicas) {
  pass_ = pass;
  open_ = true;
  collectives_ = &collectives;
  replicas_ = replicas;
  for (Parameter& p : parameters_) p.tensor.mutable_grad().reset();
  if (pass.first) {
    kept_norms_ = {};
    for (auto* sums : {&kept_norms_.sqr, &kept_norms_.previous_sqr, &kept_norms_.product}) {
      sums->assign(groups_, 0);
    }
    compared_ = has_previous();
    std::fill(local_sqr_.begin(), local_sqr_.end(), 0);
    std::fill(used_.begin(), used_.end(), false);
    if (!pass.keep && (!memory_.defined() || memory_.numel() < size_ + TailSize())) MakeMemory();
    std::fill(tail_.begin(), tail_.end(), 0.0F);
    if (device_sqr_.defined()) device_sqr_.zero_();
  }
  for (Bucket& bucket : buckets_) bucket.missing = bucket.parameters.size();
  next_bucket_ = 0;
}

void GradientBuckets::OnReady(std::size_t index) {
  if (!open_) return;  // another model's backward came through this one
  at::Tensor& gradient = parameters_[index].tensor.mutable_grad();
  if (!gradient.defined()) return;
  used_[index] = true;
  if (pass_.keep) {
    // On the CPU at once: the gradient is in the cache, and the one before is needed no more.
    if (device_.is_cpu()) CompareWithPrevious(index);
    return;
  }
  Bucket& bucket = *std::find_if(buckets_.begin(), buckets_.end(),
                                 [&](const Bucket& b) { return offsets_[index] < b.end; });
  if (device_.is_cpu()) {
    Fold(index, gradient);
    gradient.reset();
  } else {
    waiting_[index] = std::exchange(gradient, {});
  }
  if (--bucket.missing > 0) return;
  if (!device_.is_cpu()) FoldOnDevice(bucket);
  if (pass_.last) BeginFullBuckets();
}

void GradientBuckets::Fold(std::size_t index, const at::Tensor& gradient) {
  const at::Tensor whole = gradient.contiguous();
  local_sqr_[parameters_[index].group] +=
      pass_.norm_factor * FoldGradient(whole.const_data_ptr<float>(), Count(whole),
                                       ScaleAt(preconditioners_, index),
                                       static_cast<float>(pass_.weight), !pass_.first,
                                       memory_.mutable_data_ptr<float>() + offsets_[index]);
}

// A few fused operations a bucket: starting one for each parameter costs more than its arithmetic.
void GradientBuckets::FoldOnDevice(const Bucket& bucket) {
  const at::NoGradGuard no_grad;
  std::vector<std::vector<at::Tensor>> by_group(groups_);
  for (const std::size_t i : bucket.parameters) {
    const at::Tensor gradient = std::exchange(waiting_[i], {});
    if (!gradient.defined()) continue;
    const at::Tensor slice = SliceOf(i);
    if (pass_.first) {
      slice.copy_(gradient).mul_(pass_.weight);
    } else {
      slice.add_(gradient, pass_.weight);
    }
    by_group[parameters_[i].group].push_back(
        preconditioners_.empty() ? gradient : preconditioners_[i].Apply(gradient));
  }
  for (std::size_t g = 0; g < groups_; ++g) {
    if (by_group[g].empty()) continue;
    const at::Tensor norms = at::stack(at::_foreach_norm(by_group[g]));
    device_sqr_.select(0, static_cast<std::int64_t>(g))
        .add_(at::dot(norms, norms), pass_.norm_factor);
  }
}

void GradientBuckets::BeginFullBuckets() {
  // The last one waits for its tail.
  while (next_bucket_ + 1 < buckets_.size() && buckets_[next_bucket_].missing == 0) {
    BeginBucket(buckets_[next_bucket_++]);
  }
}

void GradientBuckets::BeginBucket(const Bucket& bucket) {
  const bool last = &bucket == &buckets_.back();
  const std::int64_t count = (last ? size_ + TailSize() : bucket.end) - bucket.begin;
  collectives_->StartAllReduceSum(
      {.type = CollectiveBuffer::Type::kFloat,
       .start = memory_.mutable_data_ptr<float>() + bucket.begin,
       .count = count,
       .device = device_.is_cpu() ? CollectiveBuffer::kHost : device_.index(),
       .owner = std::make_shared<at::Tensor>(memory_)});
}

void GradientBuckets::End() {
  open_ = false;
  if (pass_.keep) return;
  for (Bucket& bucket : buckets_) {
    if (bucket.missing == 0) continue;
    if (!device_.is_cpu()) FoldOnDevice(bucket);
  }
  if (!pass_.first) return;
  // What this pass did not touch must hold nothing of the last step.
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!used_[i]) SliceOf(i).zero_();
  }
}

// ---- the step -----------------------------------------------------------------------------------

void GradientBuckets::SetTailAt(std::int64_t index, double value) {
  tail_[static_cast<std::size_t>(index)] = static_cast<float>(value);
}
double GradientBuckets::TailAt(std::int64_t index) const {
  return static_cast<double>(tail_[static_cast<std::size_t>(index)]);
}
void GradientBuckets::SetComputeTime(int rank, double time_s) {
  SetTailAt(kFixedTail + static_cast<std::int64_t>(groups_ + parameters_.size()) + rank, time_s);
}
double GradientBuckets::compute_time_s(int rank) const {
  return TailAt(kFixedTail + static_cast<std::int64_t>(groups_ + parameters_.size()) + rank);
}

void GradientBuckets::ExchangeTail(bool to_memory) {
  const at::Tensor host =
      at::from_blob(tail_.data(), {static_cast<std::int64_t>(tail_.size())}, at::kFloat);
  at::Tensor there = memory_.narrow(0, size_, static_cast<std::int64_t>(tail_.size()));
  if (!to_memory) {
    host.copy_(there);
    return;
  }
  there.copy_(host);
  if (device_sqr_.defined()) {
    there.narrow(0, kFixedTail, static_cast<std::int64_t>(groups_)).copy_(device_sqr_);
  }
}

absl::Status GradientBuckets::Reduce() {
  ESPALIER_CHECK(pass_.last && !pass_.keep, "only a step that was folded can be reduced");
  for (std::size_t g = 0; g < groups_; ++g) {
    SetTailAt(kFixedTail + static_cast<std::int64_t>(g), local_sqr_[g]);
  }
  const std::int64_t used = kFixedTail + static_cast<std::int64_t>(groups_);
  for (std::size_t i = 0; i < used_.size(); ++i) {
    SetTailAt(used + static_cast<std::int64_t>(i), used_[i] ? 1 : 0);
  }
  ExchangeTail(/*to_memory=*/true);
  while (next_bucket_ < buckets_.size()) BeginBucket(buckets_[next_bucket_++]);
  if (absl::Status summed = collectives_->WaitAll(); !summed.ok()) return summed;
  ExchangeTail(/*to_memory=*/false);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    used_[i] = TailAt(used + static_cast<std::int64_t>(i)) > 0;
    if (used_[i]) parameters_[i].tensor.mutable_grad() = SliceOf(i);
  }
  return absl::OkStatus();
}

std::vector<double> GradientBuckets::LocalSqr() const {
  std::vector<double> sums;
  for (std::size_t g = 0; g < groups_; ++g) {
    sums.push_back(TailAt(kFixedTail + static_cast<std::int64_t>(g)));
  }
  return sums;
}

// ---- norms of the step --------------------------------------------------------------------------

bool GradientBuckets::Norms::finite() const {
  return std::all_of(sqr.begin(), sqr.end(), [](double s) { return std::isfinite(s); });
}

double GradientBuckets::SqrOf(std::size_t index, const at::Tensor& gradient) const {
  if (device_.is_cpu()) {
    const at::Tensor whole = gradient.contiguous();
    return SquaredNorm(whole.const_data_ptr<float>(), Count(whole),
                       ScaleAt(preconditioners_, index));
  }
  const at::Tensor scaled =
      preconditioners_.empty() ? gradient : preconditioners_[index].Apply(gradient);
  return at::dot(scaled.flatten(), scaled.flatten()).item<double>();
}

void GradientBuckets::CompareWithPrevious(std::size_t index) {
  const std::size_t g = parameters_[index].group;
  const at::Tensor& gradient = parameters_[index].tensor.grad();
  const at::Tensor before =
      has_previous() ? std::exchange(previous_[index], at::Tensor()) : at::Tensor();
  if (gradient.defined() && before.defined() && device_.is_cpu()) {
    const at::Tensor a = gradient.contiguous();
    const at::Tensor b = before.contiguous();
    const PairNorms pair = NormsWithPrevious(a.const_data_ptr<float>(), b.const_data_ptr<float>(),
                                             Count(a), ScaleAt(preconditioners_, index));
    kept_norms_.sqr[g] += pair.sqr;
    kept_norms_.previous_sqr[g] += pair.previous_sqr;
    kept_norms_.product[g] += pair.product;
    return;
  }
  if (gradient.defined()) kept_norms_.sqr[g] += SqrOf(index, gradient);
  if (before.defined()) kept_norms_.previous_sqr[g] += SqrOf(index, before);
  if (gradient.defined() && before.defined()) {
    const auto scaled = [&](const at::Tensor& t) {
      return (preconditioners_.empty() ? t : preconditioners_[index].Apply(t)).flatten();
    };
    kept_norms_.product[g] += at::dot(scaled(gradient), scaled(before)).item<double>();
  }
}

GradientBuckets::Norms GradientBuckets::MeasureStep(bool previous) {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    // Of a kept pass on the CPU only those are left that had no gradient this time.
    if (pass_.keep && device_.is_cpu() && used_[i]) continue;
    CompareWithPrevious(i);
  }
  Norms norms = std::exchange(kept_norms_, {});
  if (!previous || !compared_) {
    norms.previous_sqr.clear();
    norms.product.clear();
  }
  return norms;
}

double GradientBuckets::Norm() const {
  double sqr = 0;
  for (const Parameter& p : parameters_) {
    if (!p.tensor.grad().defined()) continue;
    const at::Tensor whole = p.tensor.grad().contiguous();
    sqr += device_.is_cpu() ? SquaredNorm(whole.const_data_ptr<float>(), Count(whole), {})
                            : at::dot(whole.flatten(), whole.flatten()).item<double>();
  }
  return std::sqrt(sqr);
}

void GradientBuckets::Scale(double factor) {
  const at::NoGradGuard no_grad;
  for (Parameter& p : parameters_) {
    // Not in place: what was kept for comparison is not to be scaled.
    if (p.tensor.grad().defined()) p.tensor.mutable_grad() = p.tensor.grad().mul(factor);
  }
}

void GradientBuckets::KeepAsPrevious() {
  previous_.clear();
  for (const Parameter& p : parameters_) {
    const at::Tensor& gradient = p.tensor.grad();
    const bool in_memory = gradient.defined() && memory_.defined() && gradient.is_alias_of(memory_);
    previous_.push_back(in_memory ? gradient.clone() : gradient);
  }
}

}  // namespace espalier
