// TrainingEngine's rehearsal: a microbatch before the group is joined, of which nothing is left but
// what the process has loaded and set up for it.

#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <ATen/core/grad_mode.h>

#include <mutex>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "trial_runner/torch/training_engine.h"

namespace espalier {
namespace {

// What a device's random generator goes on from.
at::Tensor DrawsOf(c10::Device device) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

void SetDraws(c10::Device device, const at::Tensor& draws) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard lock(generator.mutex());
  generator.set_state(draws);
}

}  // namespace

void TrainingEngine::Rehearse(const std::function<void()>& microbatch) {
  if (group_.joined()) BadUse("Rehearse was called after the first NextEpoch: call it before");
  if (rehearsing_) BadUse("Rehearse was called within Rehearse");
  std::vector<std::pair<at::Tensor, at::Tensor>> buffers;  // and what they hold
  for (const auto& model : models_) {
    for (const NamedTensor& b : model->model().Buffers()) {
      buffers.emplace_back(b.tensor, b.tensor.clone());
    }
  }
  const at::Tensor host_draws = DrawsOf(c10::kCPU);
  const at::Tensor device_draws = DrawsOf(trial_.device);
  const AccumulatedSums sums = state_.sums;
  const absl::Cleanup restore = [&] {
    const at::NoGradGuard no_grad;
    for (auto& [buffer, held] : buffers) buffer.copy_(held);
    for (const auto& model : models_) model->DropGradients();
    SetDraws(c10::kCPU, host_draws);
    SetDraws(trial_.device, device_draws);
    state_.sums = sums;
    rehearsing_ = answer_due_ = false;
  };
  rehearsing_ = answer_due_ = true;
  next_model_ = 0;
  microbatch();
  if (answer_due_) {
    BadUse(absl::StrCat("Rehearse: its function called Step for ", next_model_, " of ",
                        models_.size(), " models: it is to do all that a microbatch asks for"));
  }
}

void TrainingEngine::BackwardOfRehearsal(std::size_t number, const at::Tensor& loss) {
  models_[number]->Rehearse(loss, state_.position.models[number], *collectives_);
}

}  // namespace espalier
