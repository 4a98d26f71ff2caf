// GradientBuckets' numbers: what is measured of a step's gradients, and how they are scaled.

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dot.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "trial_runner/kernels/norm_kernels.h"
#include "trial_runner/torch/gradients/gradient_buckets.h"

namespace espalier {
namespace {

// Scaled gradients are made so many elements at a time, 32 MB, to be forgotten at once.
constexpr std::int64_t kMostScaledAtOnce = 8 << 20;
// More elements are beyond what LibTorch's dot counts with on a GPU.
constexpr std::int64_t kMostSummedAtOnce = 1 << 30;

std::size_t Count(const at::Tensor& tensor) { return static_cast<std::size_t>(tensor.numel()); }

}  // namespace

ElementScale GradientBuckets::ScaleOf(std::size_t index) const {
  if (preconditioners_.empty() || !preconditioners_[index].second_moment.defined()) return {};
  const Preconditioner& p = preconditioners_[index];
  return {p.second_moment.const_data_ptr<float>(), static_cast<float>(p.factor),
          static_cast<float>(p.epsilon)};
}

// All at once, whatever the number of parameters: their second moments lie in as many tensors.
void GradientBuckets::RefreshScales() {
  if (scales_known_) return;
  scales_known_ = true;
  if (preconditioners_.empty()) {
    scales_ = at::Tensor();
    return;
  }
  const at::NoGradGuard no_grad;
  struct Run {
    Range range;
    double factor = 0;
    double epsilon = 1;
  };
  std::vector<at::Tensor> moments;
  std::vector<Run> runs;
  for (const Bucket& bucket : buckets_) {
    for (const std::size_t i : bucket.parameters) {
      const Preconditioner& p = preconditioners_[i];
      const std::int64_t count = parameters_[i].tensor.numel();
      moments.push_back(p.second_moment.defined() ? Flat(p.second_moment, i)
                                                  : at::zeros({count}, memory_.options()));
      Run run{.range = {offsets_[i], offsets_[i] + count, parameters_[i].group}};
      if (p.second_moment.defined()) {
        run.factor = p.factor;
        run.epsilon = p.epsilon;
      }
      const bool same =
          !runs.empty() && runs.back().factor == run.factor && runs.back().epsilon == run.epsilon;
      if (same) {
        runs.back().range.end = run.range.end;
      } else {
        runs.push_back(run);
      }
    }
  }
  scales_ = at::cat(moments).sqrt_();
  for (const Run& run : runs) {
    scales_.narrow(0, run.range.begin, run.range.end - run.range.begin)
        .mul_(run.factor)
        .add_(run.epsilon)
        .reciprocal_();
  }
}

at::Tensor GradientBuckets::Scaled(const at::Tensor& gradients, const Range& range) const {
  if (!scales_.defined()) return gradients;
  return gradients * scales_.narrow(0, range.begin, range.end - range.begin);
}

void GradientBuckets::Norms::Uncompared() {
  previous_sqr.clear();
  product.clear();
}

void GradientBuckets::Norms::Unscale(double loss_scale, double previous_loss_scale) {
  for (double& s : sqr) s /= loss_scale * loss_scale;
  for (double& s : previous_sqr) s /= previous_loss_scale * previous_loss_scale;
  for (double& s : product) s /= loss_scale * previous_loss_scale;
}

bool GradientBuckets::Norms::finite() const {
  return std::all_of(sqr.begin(), sqr.end(), [](double s) { return std::isfinite(s); });
}

double GradientBuckets::SqrOf(std::size_t index, const at::Tensor& gradient) const {
  const at::Tensor whole = Flat(gradient, index);
  return SquaredNorm(whole.const_data_ptr<float>(), Count(whole), ScaleOf(index));
}

GradientBuckets::Versioned GradientBuckets::Versioned::Of(at::Tensor tensor) {
  if (!tensor.defined()) return {};
  const auto version = static_cast<std::uint32_t>(tensor._version());
  return {std::move(tensor), version};
}

bool GradientBuckets::Versioned::changed() const {
  return tensor.defined() && static_cast<std::uint32_t>(tensor._version()) != version;
}

// What was kept of the step before is not its gradient any more.
void GradientBuckets::FoundChanged() {
  copies_ = true;
  compared_ = false;
}

GradientBuckets::Versioned GradientBuckets::ForComparison(const at::Tensor& gradient) const {
  const at::NoGradGuard no_grad;
  return Versioned::Of(copies_ && gradient.defined() ? gradient.clone() : gradient);
}

// Kept gradients stay where backward has put them, and the program comes to see them.
void GradientBuckets::HoldGradients() {
  kept_.clear();
  if (in_parts_) return;
  for (const Parameter& p : parameters_) kept_.push_back(ForComparison(p.tensor.grad()));
}

void GradientBuckets::MeasureKept() {
  if (on_host() || in_parts_) return;  // the host's are measured as they come
  const at::NoGradGuard no_grad;
  kept_sums_ = StepSums();
  kept_memory_ = ForComparison(memory_);
}

// A bucket of which the sum over the replicas has arrived. Elements that were never written, of
// parameters without gradient, are zeros.
void GradientBuckets::MeasureReduced(const Bucket& bucket) {
  for (const std::size_t i : bucket.parameters) {
    if (parameters_[i].tensor.scalar_type() != at::kFloat) continue;
    kept_norms_.sqr[parameters_[i].group] += SquaredNorm(
        memory_.const_data_ptr<float>() + offsets_[i], Count(parameters_[i].tensor), ScaleOf(i));
  }
}

void GradientBuckets::CompareWithPrevious(std::size_t index) {
  const std::size_t g = parameters_[index].group;
  const at::Tensor& gradient = parameters_[index].tensor.grad();
  const Versioned kept = has_previous() ? std::exchange(previous_[index], {}) : Versioned{};
  if (kept.changed()) FoundChanged();
  const at::Tensor& before = kept.tensor;
  if (gradient.defined() && before.defined()) {
    const at::Tensor a = Flat(gradient, index);
    const at::Tensor b = Flat(before, index);
    const PairNorms pair = NormsWithPrevious(a.const_data_ptr<float>(), b.const_data_ptr<float>(),
                                             Count(a), ScaleOf(index));
    kept_norms_.sqr[g] += pair.sqr;
    kept_norms_.previous_sqr[g] += pair.previous_sqr;
    kept_norms_.product[g] += pair.product;
    return;
  }
  if (gradient.defined()) kept_norms_.sqr[g] += SqrOf(index, gradient);
  if (before.defined()) kept_norms_.previous_sqr[g] += SqrOf(index, before);
}

// By group |gradient|^2, |previous|^2 and gradient . previous; then |gradient|^2 of all, without
// preconditioner. In the memory's order: a parameter without gradient has zeros there.
at::Tensor GradientBuckets::StepSums() {
  if (previous_memory_.changed()) {
    FoundChanged();
    previous_memory_ = {};
  }
  if (kernel_ != nullptr) return StepSumsByKernel();
  RefreshScales();  // those of a step that was left out count no more
  std::vector<at::Tensor> sums(3 * groups_ + 1);
  const auto add = [&sums](std::size_t index, const at::Tensor& sum) {
    sums[index] = sums[index].defined() ? sums[index] + sum : sum;
  };
  const std::int64_t most = scales_.defined() ? kMostScaledAtOnce : kMostSummedAtOnce;
  for (const Range& of_group : ranges_) {
    for (std::int64_t begin = of_group.begin; begin < of_group.end; begin += most) {
      const Range range{begin, std::min(of_group.end, begin + most), of_group.group};
      const at::Tensor plain = memory_.narrow(0, range.begin, range.end - range.begin);
      const at::Tensor now = Scaled(plain, range);
      add(range.group, at::dot(now, now));
      if (scales_.defined()) add(3 * groups_, at::dot(plain, plain));
      if (!previous_memory_.tensor.defined()) continue;
      const at::Tensor before =
          Scaled(previous_memory_.tensor.narrow(0, range.begin, range.end - range.begin), range);
      add(groups_ + range.group, at::dot(before, before));
      add(2 * groups_ + range.group, at::dot(now, before));
    }
  }
  if (!scales_.defined()) {
    for (std::size_t g = 0; g < groups_; ++g) {
      if (sums[g].defined()) add(3 * groups_, sums[g]);
    }
  }
  at::Tensor zero;
  for (at::Tensor& sum : sums) {
    if (sum.defined()) continue;
    if (!zero.defined()) zero = at::zeros({}, memory_.options());
    sum = zero;
  }
  return at::stack(sums);
}

GradientBuckets::Norms GradientBuckets::NormsOf(const float* sums) const {
  Norms norms;
  for (auto* of : {&norms.sqr, &norms.previous_sqr, &norms.product}) {
    for (std::size_t g = 0; g < groups_; ++g) of->push_back(static_cast<double>(*sums++));
  }
  return norms;
}

void GradientBuckets::TakeSums(const float* sums) {
  kept_norms_ = NormsOf(sums);
  norm_sqr_ = static_cast<double>(sums[3 * groups_]);
}

GradientBuckets::Measurement GradientBuckets::BeginMeasuring(bool previous) {
  ESPALIER_CHECK(pass_.keep && !on_host(), "only a kept pass of a device is measured later");
  const at::NoGradGuard no_grad;
  const at::Tensor sums = StepSums();
  return {.sums = sums,
          .on_host = BeginCopyToHost(sums),
          .compared = previous && previous_memory_.tensor.defined()};
}

GradientBuckets::HostCopy GradientBuckets::BeginCopyToHost(const at::Tensor& numbers) const {
  HostCopy copy{.numbers = HostTensor(numbers.numel()), .copied = {}};
  copy.numbers.copy_(numbers, /*non_blocking=*/true);
  if (device_.is_cpu()) return copy;
  copy.copied.emplace(device_.type());
  copy.copied->record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
  return copy;
}

const float* GradientBuckets::Await(const HostCopy& copy) {
  if (copy.copied && !copy.copied->query()) copy.copied->synchronize();
  return copy.numbers.const_data_ptr<float>();
}

GradientBuckets::Norms GradientBuckets::Await(const Measurement& measurement) const {
  Norms norms = NormsOf(Await(measurement.on_host));
  if (!measurement.compared) norms.Uncompared();
  return norms;
}

at::Tensor GradientBuckets::FoundNotFinite(const Measurement& measurement) const {
  const at::NoGradGuard no_grad;
  const at::Tensor sqr = measurement.sums.narrow(0, 0, static_cast<std::int64_t>(groups_));
  // What is not finite is no zero less itself. By few operations: small models' steps are as long
  // as it takes to launch them.
  const at::Tensor found = (sqr - sqr).ne_(0);
  return groups_ == 1 ? found.squeeze(0) : found.amax();
}

void GradientBuckets::Clip(const Measurement& measurement, double norm) {
  const at::NoGradGuard no_grad;
  const at::Tensor length = measurement.sums.select(0, static_cast<std::int64_t>(3 * groups_));
  PointGradientsInto(gradients_.tensor.mul(length.rsqrt().mul_(norm).clamp_max_(1)));
}

GradientBuckets::Norms GradientBuckets::MeasureStep(bool previous) {
  const at::NoGradGuard no_grad;
  if (in_parts_) {
    // What was measured of the parts says nothing of their sum.
    for (auto* sums : {&kept_norms_.sqr, &kept_norms_.previous_sqr, &kept_norms_.product}) {
      sums->assign(groups_, 0);
    }
    compared_ = false;
    DropPrevious();
  }
  if (on_host()) {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      // Of a kept pass those are left that had no gradient this time; of others, none.
      if (in_parts_ || (pass_.keep && !used_[i])) CompareWithPrevious(i);
    }
  } else if (pass_.keep || in_parts_) {
    const at::Tensor sums = std::exchange(kept_sums_, {});
    TakeSums((sums.defined() && !in_parts_ ? sums : StepSums()).cpu().const_data_ptr<float>());
  }
  Norms norms = std::exchange(kept_norms_, {});
  if (!previous || !compared_) norms.Uncompared();
  return norms;
}

double GradientBuckets::Norm() const {
  if (!on_host()) {
    if (!gradients_.changed()) return std::sqrt(norm_sqr_);
    return gradients_.tensor.narrow(0, 0, size_).norm().item<double>();
  }
  double sqr = 0;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor& gradient = parameters_[i].tensor.grad();
    if (!gradient.defined()) continue;
    const at::Tensor whole = Flat(gradient, i);
    sqr += SquaredNorm(whole.const_data_ptr<float>(), Count(whole), {});
  }
  return std::sqrt(sqr);
}

// Not in place: what was kept for comparison is not to be scaled.
void GradientBuckets::Scale(double factor) {
  const at::NoGradGuard no_grad;
  if (!on_host()) {
    PointGradientsInto(gradients_.tensor.mul(factor));
    return;
  }
  for (Parameter& p : parameters_) {
    if (p.tensor.grad().defined()) p.tensor.mutable_grad() = p.tensor.grad().mul(factor);
  }
}

void GradientBuckets::KeepAsPrevious() {
  if (!on_host()) {
    Versioned kept =
        kept_memory_.tensor.defined() ? std::exchange(kept_memory_, {}) : Versioned::Of(memory_);
    // The one before is what the next step's are summed in, unless this one is a copy.
    if (kept.tensor.is_same(memory_)) memory_ = std::move(previous_memory_.tensor);
    previous_memory_ = std::move(kept);
    return;
  }
  if (!kept_.empty()) {
    previous_ = std::exchange(kept_, {});
    return;
  }
  previous_.clear();
  for (const Parameter& p : parameters_) {
    const at::Tensor& gradient = p.tensor.grad();
    const bool in_memory = gradient.defined() && memory_.defined() && gradient.is_alias_of(memory_);
    previous_.push_back(Versioned::Of(in_memory ? gradient.clone() : gradient));
  }
}

}  // namespace espalier
