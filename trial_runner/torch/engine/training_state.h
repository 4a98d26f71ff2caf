#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "trial_runner/elastic/accumulated_sums.h"
#include "trial_runner/elastic/training_position.h"
#include "trial_runner/torch/checkpoints/checkpoint_format.h"
#include "trial_runner/torch/checkpoints/checkpoint_writer.h"
#include "trial_runner/torch/engine/parts.h"
#include "trial_runner/torch/group/shared_state.h"
#include "trial_runner/torch/group/state_stream.h"
#include "trial_runner/torch/process/trial_context.h"

namespace espalier {

// Models, their optimizers and the position of this replica: the state that replicas have in
// common, as bytes for joining replicas, and as a file in the layout of the format.
class TrainingState final : public SharedState {
 public:
  // The format must outlive this.
  TrainingState(TrialContext& trial, CheckpointFormat& format) : trial_(trial), format_(format) {}

  // Adds a model and its optimizer, which must outlive this. To be called before the group is
  // joined, in the same order on each replica. Fails if there is a model of that name.
  absl::Status AddModel(const std::string& name, ModelPart& model, OptimizerPart& optimizer);

  TrainingPosition position;
  AccumulatedSums sums;
  // Hashes of buffers as they were when all members last had the same, by model and name.
  std::map<std::string, std::uint64_t> kept_buffers;
  // What is handed over: all, or the position and what belongs to the program, where models and
  // optimizers are known to be equal, or of models what is no parameter, or the states of the
  // program alone. Alike on all members.
  enum class Extent : std::int64_t { kAll, kProgram, kBuffers, kStates };
  Extent extent = Extent::kAll;

  std::vector<std::int64_t> Order() const override;
  std::int64_t step() const override { return position.step; }
  std::int64_t left_out() const override { return position.left_out; }
  bool HasProgramStates() const override { return !trial_.states.empty(); }
  void SetProgramStatesAlone(bool alone) override {
    extent = alone ? Extent::kStates : Extent::kAll;
  }
  absl::Status CompareFresh(Collectives& collectives, bool running) override;
  absl::StatusOr<StateOffer> Offer() override;
  absl::StatusOr<std::vector<CollectiveBuffer>> Expect(
      const std::vector<std::uint8_t>& description) override;
  absl::Status Accept() override;
  void Forsake() override;
  absl::Status Restore() override;
  void SaveCheckpoint() override;
  void AwaitCheckpoint() override { writer_.Await(); }
  absl::Status CatchUp() override;

  // Calls Sync of the program's states.
  void SyncStates();
  // Hands the state to itself, so that the first real hand-over is quick, and errors show early.
  absl::Status WarmUp();
  // Loads this checkpoint or none: another one would set the trial back silently.
  absl::Status LoadCheckpoint(const std::string& path);

 private:
  struct OptimizedModel {
    std::string name;
    ModelPart& model;
    OptimizerPart& optimizer;
  };

  void WriteModel(const OptimizedModel& trained, StateWriter& to) const;
  absl::Status ReadModel(const OptimizedModel& trained, StateReader& from);
  absl::Status ReadBuffers(const OptimizedModel& trained, StateReader& from);
  void WriteStates(StateWriter& to) const;
  absl::Status ReadStates(StateReader& from);
  std::unique_ptr<TrainingStateCopy> Copy() const;
  absl::Status TakeCheckpoint(const CheckpointTexts& texts);

  TrialContext& trial_;
  CheckpointFormat& format_;
  CheckpointWriter writer_{trial_};
  std::vector<OptimizedModel> models_;
  bool spoiled_ = false;

  // Between Expect() and Accept().
  TrainingPosition expected_position_;
  std::string expected_sums_;
  std::vector<std::string> expected_others_;  // by model: its other state
  std::vector<StateReader::Detour> detours_;
};

}  // namespace espalier
