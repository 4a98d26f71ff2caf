#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trial_runner/torch/engine/parts.h"
#include "trial_runner/torch/gradients/fused_optimizer.h"

namespace torch::nn {
class Module;
}
namespace torch::optim {
class Optimizer;
}

namespace espalier {

// LibTorch's own classes behind the seam. What they are made of must outlive them.

class LibTorchModel final : public ModelPart {
 public:
  explicit LibTorchModel(torch::nn::Module& module) : module_(module) {}

  std::vector<NamedTensor> Parameters() const override;
  std::vector<NamedTensor> Buffers() const override;
  absl::Status SetBuffers(const std::vector<NamedTensor>& buffers) override;
  std::optional<std::string> DeferHooks() override;
  void CallHooks() override {}
  void BeginEvaluation() override;
  void EndEvaluation() override;

 private:
  torch::nn::Module& module_;
  bool was_training_ = true;         // before the evaluation
  std::vector<bool> were_training_;  // those within it
};

class LibTorchOptimizer final : public OptimizerPart {
 public:
  explicit LibTorchOptimizer(torch::optim::Optimizer& optimizer);

  std::vector<std::vector<at::Tensor>> Groups() const override;
  double Rate(std::size_t group) const override;
  void Step(std::span<const double> factors, const at::Tensor& found_inf) override;
  bool UseFusedKernels() override;
  void TakeBack() override { fused_->TakeBack(); }
  bool IsAdam() const override;
  std::vector<Preconditioner> Preconditioners(const std::vector<at::Tensor>& parameters,
                                              const std::vector<std::size_t>& groups) override;
  Compared WhatToCompare() const override;
  std::vector<std::string> NamesOfTensors() const override;
  void Write(StateWriter& to) const override;
  absl::Status Read(StateReader& from) override;
  void Clear() override;

 private:
  torch::optim::Optimizer& optimizer_;
  const std::size_t parameters_;           // that it has had when it was wrapped
  std::unique_ptr<FusedOptimizer> fused_;  // null: the optimizer steps itself
};

}  // namespace espalier
