#include "trial_runner/torch/preconditioner.h"

#include <ATen/ops/cat.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>

#include <cmath>
#include <tuple>

namespace espalier {
namespace {

constexpr std::int64_t kFirstSteps = 5;

template <typename ParamState, typename Options>
at::Tensor AdamScale(torch::optim::Optimizer& optimizer,
                     const std::vector<at::Tensor>& parameters) {
  const auto& options = static_cast<const Options&>(optimizer.param_groups().front().options());
  const double beta2 = std::get<1>(options.betas());
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> parts;
  for (const at::Tensor& p : parameters) {
    const auto found = optimizer.state().find(p.unsafeGetTensorImpl());
    if (found == optimizer.state().end()) return {};
    const auto& state = static_cast<const ParamState&>(*found->second);
    if (state.step() < kFirstSteps) return {};
    const double correction = 1 - std::pow(beta2, static_cast<double>(state.step()));
    parts.push_back(
        (state.exp_avg_sq() / correction).sqrt_().add_(options.eps()).reciprocal_().reshape({-1}));
  }
  return at::cat(parts);
}

}  // namespace

at::Tensor GradientScale(torch::optim::Optimizer& optimizer,
                         const std::vector<at::Tensor>& parameters) {
  using torch::optim::Adam;
  using torch::optim::AdamW;
  if (dynamic_cast<Adam*>(&optimizer) != nullptr) {
    return AdamScale<torch::optim::AdamParamState, torch::optim::AdamOptions>(optimizer,
                                                                              parameters);
  }
  if (dynamic_cast<AdamW*>(&optimizer) != nullptr) {
    return AdamScale<torch::optim::AdamWParamState, torch::optim::AdamWOptions>(optimizer,
                                                                                parameters);
  }
  return {};
}

}  // namespace espalier
