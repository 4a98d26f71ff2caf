#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

namespace torch::optim {
class Optimizer;
}

namespace espalier {

// Steps an optimizer of LibTorch's on a device, on all parameters of a group by one or two
// launches where its own step() takes several for each parameter. Options, state and results are
// the optimizer's own, up to the order of rounding, so that the two may take turns. One thread.
class FusedOptimizer {
 public:
  // For SGD, Adam, AdamW and Adagrad, by their exact class; null for others, and where a
  // parameter's memory has gaps, which the kernels would write to. `optimizer` must outlive it.
  static std::unique_ptr<FusedOptimizer> For(torch::optim::Optimizer& optimizer);
  virtual ~FusedOptimizer() = default;

  // As step() of the optimizer. Where `found_inf`, a float on the device, is 1, the device leaves
  // parameters and state as they are, and the host, which does not know of it, counts the step in
  // the optimizer's state. Undefined: 0.
  virtual void Step(const at::Tensor& found_inf) = 0;
  // The device has left the last step out: takes back what the host counted for it.
  virtual void TakeBack() = 0;
};

}  // namespace espalier
