#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace torch::optim {
class Optimizer;
}

namespace espalier {

// By what an optimizer scales each gradient element before it steps: Adam and AdamW divide by
// sqrt(v / (1 - beta2^t)) + eps. Gradient noise is measured after that scaling, since it is the
// scaled gradient that moves the parameters. One piece in the order of `parameters`; undefined for
// optimizers that do not scale, and for Adam's first steps, whose averages say little.
at::Tensor GradientScale(torch::optim::Optimizer& optimizer,
                         const std::vector<at::Tensor>& parameters);

}  // namespace espalier
