#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace torch::optim {
class Optimizer;
}

namespace espalier {

// The factor by which an optimizer scales each element of one parameter's gradient before it steps:
// 1 / (sqrt(second_moment) * factor + epsilon); undefined: not at all.
struct Preconditioner {
  at::Tensor second_moment;
  double factor = 1;  // 1 / sqrt(1 - beta2^t)
  double epsilon = 0;

  at::Tensor Apply(const at::Tensor& gradient) const;
};

// The tensor with its elements in the order in which GradientBuckets has those of the parameter.
at::Tensor InOrderOf(const at::Tensor& parameter, const at::Tensor& tensor);

// Adam and AdamW divide by sqrt(v / (1 - beta2^t)) + eps. Gradient noise is measured after that
// scaling, since it is the scaled gradient that moves the parameters. One per parameter, in their
// order; empty for optimizers that do not scale, and for Adam's first steps, when the averages are
// not yet meaningful. The tensors' elements are in the order of their parameters' elements. Where
// the optimizer's own tensors have that order they are returned as they are, valid until its next
// step.
std::vector<Preconditioner> Preconditioners(torch::optim::Optimizer& optimizer,
                                            const std::vector<at::Tensor>& parameters,
                                            const std::vector<std::size_t>& groups);

// Whether the optimizer is Adam or AdamW, by type, which decides its default scaling rule.
bool IsAdam(torch::optim::Optimizer& optimizer);

}  // namespace espalier
