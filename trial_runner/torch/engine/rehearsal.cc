// OptimizerStep's rehearsal: a microbatch before the group is joined, of which nothing is left but
// what the process has loaded and set up for it.

#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <ATen/core/grad_mode.h>

#include <mutex>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "trial_runner/torch/engine/optimizer_step.h"

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

// What a rehearsal may change beside gradients, as it was.
class FormerState {
 public:
  FormerState(std::vector<at::Tensor> buffers, c10::Device device, AccumulatedSums& sums)
      : device_(device),
        host_draws_(DrawsOf(c10::kCPU)),
        device_draws_(DrawsOf(device)),
        buffers_(std::move(buffers)),
        sums_(sums),
        former_sums_(sums) {
    for (const at::Tensor& buffer : buffers_) former_buffers_.push_back(buffer.clone());
  }
  void Restore() {
    for (std::size_t i = 0; i < buffers_.size(); ++i) buffers_[i].copy_(former_buffers_[i]);
    SetDraws(c10::kCPU, host_draws_);
    SetDraws(device_, device_draws_);
    sums_ = former_sums_;
  }

 private:
  const c10::Device device_;
  const at::Tensor host_draws_;
  const at::Tensor device_draws_;
  std::vector<at::Tensor> buffers_;
  std::vector<at::Tensor> former_buffers_;
  AccumulatedSums& sums_;
  const AccumulatedSums former_sums_;
};

}  // namespace

void OptimizerStep::LeaveNoTraceOf(const std::function<void()>& rehearsal) {
  if (group_.joined()) BadUse("Rehearse was called after the first NextEpoch: call it before");
  if (rehearsing_) BadUse("Rehearse was called within Rehearse");
  FormerState former(Buffers(), trial_.device, state_.sums);
  const absl::Cleanup restore = [&] {
    const at::NoGradGuard no_grad;
    former.Restore();
    DropGradients();
    rehearsing_ = answer_due_ = false;
  };
  rehearsing_ = answer_due_ = true;
  next_model_ = 0;
  rehearsal();
}

void OptimizerStep::Rehearse(const std::function<void()>& microbatch) {
  LeaveNoTraceOf([&] {
    microbatch();
    if (!answer_due_) return;
    BadUse(absl::StrCat("Rehearse: its function called Step for ", next_model_, " of ",
                        models_.size(), " models: it is to do all that a microbatch asks for"));
  });
}

void OptimizerStep::RehearsePasses(const std::function<void()>& microbatch) {
  LeaveNoTraceOf([&] {
    passes_.assign(models_.size(), PassState::kOpen);
    for (std::size_t i = 0; i < models_.size(); ++i) {
      // As the first microbatch of several: its gradients are folded, and no collective is begun.
      models_[i]->OpenPass({.weight = 1, .first = true, .last = false}, state_.position.models[i],
                           collectives_, 1);
    }
    microbatch();
    hold_gradients_ = false;
    for (std::size_t i = 0; i < models_.size(); ++i) {
      if (passes_[i] != PassState::kOpen) continue;
      models_[i]->ClosePass();  // the program may have set gradients itself
      if (models_[i]->gradients().any_used()) continue;
      BadUse(absl::StrCat("rehearse: no backward brought gradients of ", models_[i]->what(),
                          ": its function is to do all that a batch asks for"));
    }
  });
}

}  // namespace espalier
