#include "trial_runner/torch/engine/libtorch_parts.h"

#include <torch/csrc/autograd/variable.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include "absl/strings/str_cat.h"
#include "trial_runner/torch/checkpoints/optimizer_state.h"
#include "trial_runner/torch/process/trial_context.h"

namespace espalier {
namespace {

std::size_t ParametersIn(const torch::optim::Optimizer& optimizer) {
  std::size_t count = 0;
  for (const auto& group : optimizer.param_groups()) count += group.params().size();
  return count;
}

}  // namespace

std::vector<NamedTensor> LibTorchModel::Parameters() const {
  std::vector<NamedTensor> tensors;
  for (const auto& p : module_.named_parameters()) tensors.push_back({p.key(), p.value()});
  return tensors;
}

std::vector<NamedTensor> LibTorchModel::Buffers() const {
  std::vector<NamedTensor> tensors;
  for (const auto& b : module_.named_buffers()) tensors.push_back({b.key(), b.value()});
  return tensors;
}

// A program's class may hold a buffer beside the module, so it stays the tensor that it is.
absl::Status LibTorchModel::SetBuffers(const std::vector<NamedTensor>& buffers) {
  auto own = module_.named_buffers();
  for (const auto& [name, tensor] : buffers) {
    at::Tensor* const buffer = own.find(name);
    if (buffer == nullptr) {
      return absl::FailedPreconditionError(
          absl::StrCat("there is no buffer \"", name, "\" in this replica's model"));
    }
    if (!buffer->is_same(tensor)) buffer->set_data(tensor);
  }
  return absl::OkStatus();
}

std::optional<std::string> LibTorchModel::DeferHooks() {
  for (const auto& p : module_.named_parameters()) {
    if (!torch::autograd::impl::hooks(p.value()).empty()) return p.key();
  }
  return std::nullopt;
}

void LibTorchModel::BeginEvaluation() {
  was_training_ = module_.is_training();
  were_training_.clear();
  for (const auto& module : module_.modules(/*include_self=*/false)) {
    were_training_.push_back(module->is_training());
  }
  module_.eval();
}

// A module's train() reaches those within it, which come after it.
void LibTorchModel::EndEvaluation() {
  module_.train(was_training_);
  std::size_t i = 0;
  for (const auto& module : module_.modules(/*include_self=*/false)) {
    module->train(were_training_[i++]);
  }
}

LibTorchOptimizer::LibTorchOptimizer(torch::optim::Optimizer& optimizer)
    : optimizer_(optimizer), parameters_(ParametersIn(optimizer)) {}

std::vector<std::vector<at::Tensor>> LibTorchOptimizer::Groups() const {
  std::vector<std::vector<at::Tensor>> groups;
  for (const auto& group : optimizer_.param_groups()) groups.push_back(group.params());
  return groups;
}

double LibTorchOptimizer::Rate(std::size_t group) const {
  return optimizer_.param_groups()[group].options().get_lr();
}

void LibTorchOptimizer::Step(std::span<const double> factors, const at::Tensor& found_inf) {
  if (const std::size_t has = ParametersIn(optimizer_); has != parameters_) {
    BadUse(
        absl::StrCat("Step: the optimizer has ", has, " parameters, and had ", parameters_,
                     " when AdaptiveDataParallel was made of it: want all of them, and all groups, "
                     "before that"));
  }
  std::vector<double> rates;
  for (auto& group : optimizer_.param_groups()) {
    rates.push_back(group.options().get_lr());
    group.options().set_lr(rates.back() * factors[rates.size() - 1]);
  }
  if (fused_) {
    fused_->Step(found_inf);
  } else {
    optimizer_.step();
  }
  std::size_t i = 0;
  for (auto& group : optimizer_.param_groups()) group.options().set_lr(rates[i++]);
}

bool LibTorchOptimizer::UseFusedKernels() {
  fused_ = FusedOptimizer::For(optimizer_);
  return fused_ != nullptr;
}

bool LibTorchOptimizer::IsAdam() const { return espalier::IsAdam(optimizer_); }

std::vector<Preconditioner> LibTorchOptimizer::Preconditioners(
    const std::vector<at::Tensor>& parameters, const std::vector<std::size_t>& groups) {
  return espalier::Preconditioners(optimizer_, parameters, groups);
}

OptimizerPart::Compared LibTorchOptimizer::WhatToCompare() const {
  Compared compared;
  const OptimizerNumbers numbers = NumbersOf(optimizer_, compared.tensors);
  compared.numbers.assign(reinterpret_cast<const char*>(numbers.data()),
                          numbers.size() * sizeof(double));
  return compared;
}

std::vector<std::string> LibTorchOptimizer::NamesOfTensors() const {
  const Compared compared = WhatToCompare();
  std::vector<std::string> names;
  for (std::size_t i = 0; i < compared.tensors.size(); ++i) {
    names.push_back(absl::StrCat("tensor ", i, " of the optimizer's state"));
  }
  return names;
}

void LibTorchOptimizer::Write(StateWriter& to) const { WriteOptimizer(optimizer_, to); }
absl::Status LibTorchOptimizer::Read(StateReader& from) { return ReadOptimizer(optimizer_, from); }
void LibTorchOptimizer::Clear() { optimizer_.state().clear(); }

}  // namespace espalier
