#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trial_runner/elastic/training_position.h"
#include "trial_runner/torch/shared_state.h"
#include "trial_runner/torch/state_stream.h"
#include "trial_runner/torch/trial_context.h"

namespace torch::nn {
class Module;
}
namespace torch::optim {
class Optimizer;
}

namespace espalier {

// Models, their optimizers and the position of this replica: what replicas have in common, as bytes
// for those who join, and as a file. A checkpoint is a LibTorch archive with "model", "optimizer"
// and "espalier" in it, so that other programs can load the model from it; a model with a name has
// "model.NAME" and "optimizer.NAME".
class TrainingState final : public SharedState {
 public:
  explicit TrainingState(TrialContext& trial) : trial_(trial) {}

  // Another model and its optimizer, which must outlive this. Before the group is joined, in the
  // same order on each replica. Fails if there is one of that name.
  absl::Status AddModel(const std::string& name, torch::nn::Module& model,
                        torch::optim::Optimizer& optimizer);

  TrainingPosition position;

  std::vector<std::int64_t> Order() const override;
  std::int64_t step() const override { return position.step; }
  absl::StatusOr<StateOffer> Offer() override;
  absl::StatusOr<std::vector<CollectiveBuffer>> Expect(
      const std::vector<std::uint8_t>& description) override;
  absl::Status Accept() override;
  void Forsake() override;
  absl::Status Restore() override;
  void SaveCheckpoint() override;
  absl::Status CatchUp() override;

  // Hands the state to itself, so that doing so in earnest is quick, and errors show early.
  absl::Status WarmUp();
  // The checkpoint that the trial was given; if it cannot be read, the newest of its folder that
  // can. A joiner's may well be gone: those who train meanwhile write newer ones.
  absl::Status LoadNewestCheckpoint();
  absl::Status LoadCheckpoint(const std::string& path);

 private:
  struct OptimizedModel {
    std::string name;
    torch::nn::Module& model;
    torch::optim::Optimizer& optimizer;
  };

  absl::Status ReadModel(const OptimizedModel& trained, StateReader& from);

  TrialContext& trial_;
  std::vector<OptimizedModel> models_;
  bool spoiled_ = false;

  // Between Expect() and Accept().
  TrainingPosition expected_position_;
  std::vector<StateReader::Detour> detours_;
};

}  // namespace espalier
