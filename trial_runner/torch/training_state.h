#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trial_runner/elastic/training_position.h"
#include "trial_runner/torch/replica_group.h"
#include "trial_runner/torch/trial_context.h"

namespace torch::nn {
class Module;
}
namespace torch::optim {
class Optimizer;
}

namespace espalier {

// Model, optimizer and position of this replica: what replicas have in common, as bytes for those
// who join, and as a file. A checkpoint is a LibTorch archive with "model", "optimizer" and
// "espalier" in it, so that other programs can load the model from it.
class TrainingState final : public SharedState {
 public:
  TrainingState(TrialContext& trial, torch::nn::Module& model, torch::optim::Optimizer& optimizer)
      : trial_(trial), model_(model), optimizer_(optimizer) {}

  TrainingPosition position;

  std::vector<std::int64_t> Order() const override;
  std::int64_t step() const override { return position.step; }
  absl::StatusOr<std::shared_ptr<std::vector<std::uint8_t>>> Save() const override;
  absl::Status Load(const std::vector<std::uint8_t>& bytes) override;
  void SaveCheckpoint() override;

  // Saves and loads the state as it is, so that doing so in earnest is quick, and errors show
  // early.
  absl::Status WarmUp();
  // The checkpoint that the trial was given; if it cannot be read, the newest of its folder that
  // can. A joiner's may well be gone: those who train meanwhile write newer ones.
  absl::Status LoadNewestCheckpoint();
  absl::Status LoadCheckpoint(const std::string& path);

 private:
  TrialContext& trial_;
  torch::nn::Module& model_;
  torch::optim::Optimizer& optimizer_;
};

}  // namespace espalier
