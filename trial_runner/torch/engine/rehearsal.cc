// OptimizerStep's rehearsal: a microbatch before the group is joined, of which nothing is left but
// what the process has loaded and set up for it.

#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

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

// A model's buffers and other state, as they were. A forward pass may replace buffers by others.
class FormerModel {
 public:
  explicit FormerModel(ModelPart& model)
      : model_(&model), buffers_(model.Buffers()), other_(model.OtherState()) {
    for (const NamedTensor& buffer : buffers_) content_.push_back(buffer.tensor.clone());
  }
  void Restore() const {
    const std::vector<NamedTensor> now = model_->Buffers();
    const auto same = [](const NamedTensor& a, const NamedTensor& b) {
      return a.name == b.name && a.tensor.is_same(b.tensor);
    };
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      const at::Tensor& buffer = buffers_[i].tensor;
      if (buffer.sizes() != content_[i].sizes()) buffer.set_data(content_[i].clone());
      buffer.copy_(content_[i]);
    }
    if (!std::ranges::equal(now, buffers_, same)) {
      const absl::Status set = model_->SetBuffers(buffers_);
      if (!set.ok()) EndProcess(set, 1);
    }
    if (!other_.empty()) model_->SetOtherState(other_);
  }

 private:
  ModelPart* model_;
  std::vector<NamedTensor> buffers_;
  std::vector<at::Tensor> content_;
  std::string other_;
};

// What a rehearsal may change beside gradients, as it was.
class FormerState {
 public:
  FormerState(const std::vector<std::unique_ptr<TrainedModel>>& models, c10::Device device,
              AccumulatedSums& sums)
      : device_(device),
        host_draws_(DrawsOf(c10::kCPU)),
        device_draws_(DrawsOf(device)),
        sums_(sums),
        former_sums_(sums) {
    for (const auto& model : models) models_.emplace_back(model->model());
  }
  void Restore() {
    for (const FormerModel& model : models_) model.Restore();
    SetDraws(c10::kCPU, host_draws_);
    SetDraws(device_, device_draws_);
    sums_ = former_sums_;
  }

 private:
  const c10::Device device_;
  const at::Tensor host_draws_;
  const at::Tensor device_draws_;
  std::vector<FormerModel> models_;
  AccumulatedSums& sums_;
  const AccumulatedSums former_sums_;
};

}  // namespace

void OptimizerStep::LeaveNoTraceOf(const std::function<void()>& rehearsal) {
  if (group_.joined()) BadUse("Rehearse was called after the first NextEpoch: call it before");
  if (rehearsing_) BadUse("Rehearse was called within Rehearse");
  FormerState former(models_, trial_.device, state_.sums);
  const absl::Cleanup restore = [&] {
    const at::NoGradGuard no_grad;
    former.Restore();
    DropGradients();
    rehearsing_ = answer_due_ = false;
  };
  rehearsing_ = answer_due_ = true;
  next_model_ = 0;
  rehearsal();
  rehearsed_ = true;
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
