#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "trial_runner/torch/checkpoints/checkpoint_file.h"
#include "trial_runner/torch/state.h"

namespace espalier {

// A copy of a training state in host memory, which is written while training goes on. It is made on
// the thread that trains; Write may run on any one thread.
class TrainingStateCopy {
 public:
  virtual ~TrainingStateCopy() = default;

  std::int64_t step = 0;
  std::optional<double> value;  // the trial's last

  virtual absl::Status Write(const ByteSink& sink) const = 0;
};

// What a checkpoint holds beside models, optimizers and states.
struct CheckpointTexts {
  std::string position;      // TrainingPosition::Encode
  std::string accumulators;  // AccumulatedSums::Encode
};

// How the checkpoints of a program are laid out: what other programs can load of them. It knows the
// models and optimizers itself; states of the program come along.
class CheckpointFormat {
 public:
  using States = std::map<std::string, State*>;  // by name

  virtual ~CheckpointFormat() = default;

  // Copies everything. May throw.
  virtual std::unique_ptr<TrainingStateCopy> Copy(const CheckpointTexts& texts,
                                                  const States& states) const = 0;
  // Loads everything in place, states included. Fails where the file and the program do not fit,
  // and names what is missing, of another shape, or too much. May throw.
  virtual absl::StatusOr<CheckpointTexts> Load(const std::string& path, const States& states) = 0;
  // The position alone. May throw.
  virtual std::string PositionIn(const std::string& path) const = 0;
};

}  // namespace espalier
