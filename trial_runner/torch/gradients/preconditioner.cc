#include "trial_runner/torch/gradients/preconditioner.h"

#include <ATen/ops/empty_strided.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>

#include <cmath>
#include <tuple>

namespace espalier {
namespace {

constexpr std::int64_t kFirstSteps = 5;

template <typename ParamState, typename Options>
std::vector<Preconditioner> OfAdam(torch::optim::Optimizer& optimizer,
                                   const std::vector<at::Tensor>& parameters,
                                   const std::vector<std::size_t>& groups) {
  std::vector<Preconditioner> all;
  all.reserve(parameters.size());
  bool any = false;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto found = optimizer.state().find(parameters[i].unsafeGetTensorImpl());
    if (found == optimizer.state().end()) {  // never had a gradient
      all.emplace_back();
      continue;
    }
    const auto& state = static_cast<const ParamState&>(*found->second);
    if (state.step() < kFirstSteps) return {};
    const auto& options =
        static_cast<const Options&>(optimizer.param_groups()[groups[i]].options());
    const double beta2 = std::get<1>(options.betas());
    const double correction = 1 - std::pow(beta2, static_cast<double>(state.step()));
    all.push_back(
        {InOrderOf(parameters[i], state.exp_avg_sq()), 1 / std::sqrt(correction), options.eps()});
    any = true;
  }
  if (!any) all.clear();
  return all;
}

}  // namespace

at::Tensor InOrderOf(const at::Tensor& parameter, const at::Tensor& of_any_type) {
  const at::Tensor tensor = of_any_type.to(at::kFloat);
  if (parameter.is_contiguous() || !parameter.is_non_overlapping_and_dense()) {
    return tensor.contiguous();
  }
  if (tensor.strides() == parameter.strides()) return tensor;
  at::Tensor ordered = at::empty_strided(parameter.sizes(), parameter.strides(), tensor.options());
  ordered.copy_(tensor);
  return ordered;
}

at::Tensor Preconditioner::Apply(const at::Tensor& gradient) const {
  if (!second_moment.defined()) return gradient;
  return gradient / (second_moment.sqrt() * factor + epsilon);
}

bool IsAdam(torch::optim::Optimizer& optimizer) {
  return dynamic_cast<torch::optim::Adam*>(&optimizer) != nullptr ||
         dynamic_cast<torch::optim::AdamW*>(&optimizer) != nullptr;
}

std::vector<Preconditioner> Preconditioners(torch::optim::Optimizer& optimizer,
                                            const std::vector<at::Tensor>& parameters,
                                            const std::vector<std::size_t>& groups) {
  using torch::optim::Adam;
  using torch::optim::AdamW;
  if (dynamic_cast<Adam*>(&optimizer) != nullptr) {
    return OfAdam<torch::optim::AdamParamState, torch::optim::AdamOptions>(optimizer, parameters,
                                                                           groups);
  }
  if (dynamic_cast<AdamW*>(&optimizer) != nullptr) {
    return OfAdam<torch::optim::AdamWParamState, torch::optim::AdamWOptions>(optimizer, parameters,
                                                                             groups);
  }
  return {};
}

}  // namespace espalier
