#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trial_runner/control/parameters.h"
#include "trial_runner/torch/checkpoints/checkpoint_format.h"

namespace torch::nn {
class Module;
}
namespace torch::optim {
class Optimizer;
}

namespace espalier {

// Checkpoints of programs that train LibTorch's own classes: an archive of LibTorch's with "model",
// "optimizer" and "espalier" in it, so that other programs can load the model from it. A model with
// a name has "model.NAME" and "optimizer.NAME", a state of the program "state.NAME". It holds what
// torch::nn::Module::save and Optimizer::save would write. Modules that override save() are not
// asked: what they keep beside parameters and buffers is a State's business.
//
// It also holds the trial's parameters, and the options that optimizers were built with: a trial
// that begins with the checkpoint of one with other parameters goes on with its own options.
class LibTorchCheckpoints final : public CheckpointFormat {
 public:
  // Those of the trial, which must outlive this.
  explicit LibTorchCheckpoints(const Parameters& parameters) : parameters_(parameters) {}

  // Both must outlive this.
  void AddModel(const std::string& name, torch::nn::Module& model,
                torch::optim::Optimizer& optimizer);

  std::unique_ptr<TrainingStateCopy> Copy(const CheckpointTexts& texts,
                                          const States& states) const override;
  absl::StatusOr<CheckpointTexts> Load(const std::string& path, const States& states) override;
  std::string PositionIn(const std::string& path) const override;

 private:
  struct OptimizedModel {
    std::string name;
    torch::nn::Module& model;
    torch::optim::Optimizer& optimizer;
    std::vector<double> options;  // as it was built, see OptionNumbersOf
  };

  const Parameters& parameters_;
  std::vector<OptimizedModel> models_;
};

}  // namespace espalier
