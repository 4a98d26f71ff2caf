#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "trial_runner/torch/group/state_stream.h"

namespace torch::optim {
class Optimizer;
class OptimizerOptions;
class OptimizerParamGroup;
class OptimizerParamState;
}  // namespace torch::optim

namespace espalier {

// One kind of optimizer as its state is seen from outside: the tensors and numbers that it keeps
// for each parameter, and the options of a parameter group. A new kind is a row in the table of
// optimizer_state.cc. Optimizers of other kinds go through LibTorch's archives, which are slower.
struct OptimizerKind {
  struct Fields {
    std::vector<at::Tensor*> tensors;
    std::vector<std::int64_t*> integers;
  };

  const char* name;
  std::unique_ptr<torch::optim::OptimizerParamState> (*new_state)();
  Fields (*fields)(torch::optim::OptimizerParamState& state);
  std::vector<double> (*options)(const torch::optim::OptimizerOptions& options);
  void (*set_options)(torch::optim::OptimizerOptions& options, const std::vector<double>& values);
  // An optimizer of the same kind and options for other parameters.
  std::unique_ptr<torch::optim::Optimizer> (*like)(
      const torch::optim::Optimizer& optimizer,
      std::vector<torch::optim::OptimizerParamGroup> groups);
};

// By the optimizer's exact class: derived ones may keep more. Null if there is no row for it.
const OptimizerKind* FindOptimizerKind(const torch::optim::Optimizer& optimizer);

// The numbers of the optimizer's options and state, and the tensors of the latter, in an order that
// is the same for equal optimizers. Of kinds that have no row: nothing.
using OptimizerNumbers = std::vector<double>;
OptimizerNumbers NumbersOf(const torch::optim::Optimizer& optimizer,
                           std::vector<at::Tensor>& tensors);

// The options of all groups, one group after the other, as numbers; the learning rate is the first
// of each. Of kinds that have no row: nothing.
std::vector<double> OptionNumbersOf(const torch::optim::Optimizer& optimizer);
// The optimizer's options are those of a checkpoint. Sets the ones that two programs built
// otherwise, the checkpoint's with `then` and this one with `now`, to this program's; of a learning
// rate what training has made of it stays in proportion. FAILED_PRECONDITION: the numbers do not
// fit the optimizer.
absl::Status TakeOwnOptions(torch::optim::Optimizer& optimizer, const std::vector<double>& then,
                            const std::vector<double>& now);

// Writes the optimizer's options and state, without the parameters. LibTorch may throw.
void WriteOptimizer(const torch::optim::Optimizer& optimizer, StateWriter& to);
absl::Status ReadOptimizer(torch::optim::Optimizer& optimizer, StateReader& from);

}  // namespace espalier
