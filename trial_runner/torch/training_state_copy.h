#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "trial_runner/torch/checkpoint_file.h"

namespace torch::nn {
class Module;
}
namespace torch::optim {
class Optimizer;
}
namespace torch::serialize {
class InputArchive;
}

namespace espalier {

// The tensors of a module under their names, nested as in LibTorch's archives.
struct ModuleTensors {
  std::vector<std::pair<std::string, at::Tensor>> parameters;
  std::vector<std::pair<std::string, at::Tensor>> buffers;
  std::vector<std::pair<std::string, ModuleTensors>> children;
};

// A copy of a training state in host memory, which is written while training goes on. What it
// writes is what torch::nn::Module::save and Optimizer::save would, under one key each. Modules
// that override save() are not asked: what they keep beside parameters and buffers is a State's
// business. Adding copies the tensors, on the thread that trains; Write may run on any one thread.
class TrainingStateCopy {
 public:
  TrainingStateCopy();
  ~TrainingStateCopy();

  std::int64_t step = 0;
  std::optional<double> value;  // the trial's last

  // LibTorch may throw in these.
  void AddModule(const std::string& key, const torch::nn::Module& module);
  void AddOptimizer(const std::string& key, const torch::optim::Optimizer& optimizer);
  void AddText(const std::string& key, std::string text);
  void AddBytes(const std::string& key, const std::string& bytes);  // as a tensor

  absl::Status Write(const ByteSink& sink) const;

 private:
  struct OptimizerCopy {
    std::unique_ptr<torch::optim::Optimizer> optimizer;
    std::string archive;  // instead, of one that is not in the table of kinds
  };

  std::vector<std::pair<std::string, ModuleTensors>> modules_;
  std::vector<std::pair<std::string, OptimizerCopy>> optimizers_;
  std::vector<std::pair<std::string, c10::IValue>> values_;
};

// Loads in place what AddModule and AddOptimizer wrote. Fails at the first parameter that is
// missing, of another shape or type, or too many, and names it.
absl::Status ReadModule(torch::serialize::InputArchive& archive, const std::string& key,
                        torch::nn::Module& module);
absl::Status ReadOptimizer(torch::serialize::InputArchive& archive, const std::string& key,
                           torch::optim::Optimizer& optimizer);
absl::StatusOr<std::string> ReadBytes(torch::serialize::InputArchive& archive,
                                      const std::string& key);

}  // namespace espalier
