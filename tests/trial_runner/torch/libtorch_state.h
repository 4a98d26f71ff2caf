#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trial_runner/torch/checkpoints/libtorch_checkpoint.h"
#include "trial_runner/torch/engine/libtorch_parts.h"
#include "trial_runner/torch/engine/training_state.h"

namespace espalier {

// The training state of LibTorch's own models, put together as the engine does it.
class LibTorchState {
 public:
  explicit LibTorchState(TrialContext& trial) : format_(trial.parameters), state(trial, format_) {}

  absl::Status AddModel(const std::string& name, torch::nn::Module& model,
                        torch::optim::Optimizer& optimizer) {
    models_.push_back(std::make_unique<LibTorchModel>(model));
    optimizers_.push_back(std::make_unique<LibTorchOptimizer>(optimizer));
    absl::Status added = state.AddModel(name, *models_.back(), *optimizers_.back());
    if (added.ok()) format_.AddModel(name, model, optimizer);
    return added;
  }

 private:
  LibTorchCheckpoints format_;
  std::vector<std::unique_ptr<LibTorchModel>> models_;
  std::vector<std::unique_ptr<LibTorchOptimizer>> optimizers_;

 public:
  TrainingState state;
};

}  // namespace espalier
