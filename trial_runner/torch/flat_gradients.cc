#include "trial_runner/torch/flat_gradients.h"

#include <ATen/ops/dot.h>
#include <ATen/ops/zeros.h>

#include <memory>
#include <utility>

namespace espalier {

FlatGradients::FlatGradients(std::vector<at::Tensor> parameters)
    : parameters_(std::move(parameters)) {
  for (const at::Tensor& p : parameters_) size_ += p.numel();
  Renew();
}

at::Tensor FlatGradients::NewMemory() const { return at::zeros({size_ + kTailSize}, at::kFloat); }

at::Tensor FlatGradients::GradientPart(const at::Tensor& memory) const {
  return memory.narrow(0, 0, size_);
}

void FlatGradients::PointGradients() {
  std::int64_t offset = 0;
  for (at::Tensor& p : parameters_) {
    p.mutable_grad() = memory_.narrow(0, offset, p.numel()).view(p.sizes());
    offset += p.numel();
  }
}

void FlatGradients::PrepareBackward() {
  const float* expected = memory_.const_data_ptr<float>();
  for (const at::Tensor& p : parameters_) {
    if (!p.grad().defined() || p.grad().const_data_ptr() != expected) {
      PointGradients();
      break;
    }
    expected += p.numel();
  }
  memory_.zero_();
}

void FlatGradients::Accumulate(double weight, bool first, bool last) {
  if (first && last) {
    if (weight != 1.0) GradientPart(memory_).mul_(weight);
    return;
  }
  if (!sum_.defined()) sum_ = NewMemory();
  if (first) sum_.zero_();
  GradientPart(sum_).add_(GradientPart(memory_), weight);
  if (last) {
    std::swap(memory_, sum_);
    PointGradients();
  }
}

at::Tensor FlatGradients::ScaledPart(const at::Tensor& memory) const {
  return scale_.defined() ? GradientPart(memory).mul(scale_) : GradientPart(memory);
}

double FlatGradients::Sqr() const {
  const at::Tensor g = ScaledPart(memory_);
  return at::dot(g, g).item<double>();
}

void FlatGradients::SetTail(Tail index, double value) {
  memory_.mutable_data_ptr<float>()[size_ + index] = static_cast<float>(value);
}

double FlatGradients::tail(Tail index) const {
  return static_cast<double>(memory_.const_data_ptr<float>()[size_ + index]);
}

CollectiveBuffer FlatGradients::Buffer() const {
  return {CollectiveBuffer::Type::kFloat, memory_.mutable_data_ptr(), memory_.numel(),
          CollectiveBuffer::kHost, std::make_shared<at::Tensor>(memory_)};
}

void FlatGradients::KeepAsPrevious() {
  if (!previous_.defined()) previous_ = NewMemory();
  std::swap(previous_, memory_);  // PrepareBackward points the gradients at the new memory
}

double FlatGradients::PreviousSqr() const {
  const at::Tensor p = ScaledPart(previous_);
  return at::dot(p, p).item<double>();
}

double FlatGradients::ProductWithPrevious() const {
  return at::dot(ScaledPart(previous_), ScaledPart(memory_)).item<double>();
}

void FlatGradients::Renew() {
  memory_ = NewMemory();
  previous_.reset();
  PointGradients();
}

}  // namespace espalier
