#include "trial_runner/torch/adaptive_data_parallel.h"

#include <ATen/autocast_mode.h>
#include <c10/util/StringUtil.h>
#include <torch/optim/lbfgs.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "trial_runner/torch/engine/training_engine.h"
#include "trial_runner/torch/process/trial_context.h"
#include "trial_runner/torch/trial.h"

namespace espalier {

AutocastGuard::AutocastGuard(int device_type, int scalar_type)
    : device_type_(device_type), active_(scalar_type >= 0) {
  if (!active_) return;
  const auto device = static_cast<at::DeviceType>(device_type_);
  was_enabled_ = at::autocast::is_autocast_enabled(device);
  former_type_ = static_cast<int>(at::autocast::get_autocast_dtype(device));
  at::autocast::set_autocast_enabled(device, true);
  at::autocast::set_autocast_dtype(device, static_cast<at::ScalarType>(scalar_type));
  at::autocast::increment_nesting();
}

AutocastGuard::~AutocastGuard() {
  if (!active_) return;
  const auto device = static_cast<at::DeviceType>(device_type_);
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_dtype(device, static_cast<at::ScalarType>(former_type_));
  at::autocast::set_autocast_enabled(device, was_enabled_);
}

namespace {

torch::optim::Optimizer& WithoutClosures(torch::optim::Optimizer& optimizer) {
  if (dynamic_cast<torch::optim::LBFGS*>(&optimizer) != nullptr) {
    BadUse(
        "AdaptiveDataParallel: LBFGS runs backward as often as it likes, which replicas cannot "
        "share: "
        "want another optimizer");
  }
  return optimizer;
}

void CheckLoss(const at::Tensor& loss) {
  std::string is;
  if (!loss.defined()) {
    is = "undefined";
  } else if (loss.numel() != 1) {
    is = absl::StrCat("of shape ", c10::str(loss.sizes()));
  } else if (!loss.requires_grad()) {
    is = "without a gradient";
  }
  if (is.empty()) return;
  BadUse(absl::StrCat("Step: the loss is ", is,
                      ": want one number that depends on the model's parameters, e.g. a mean"));
}

}  // namespace

AdaptiveDataParallel::AdaptiveDataParallel(Trial& trial, torch::nn::Module& model,
                                           torch::optim::Optimizer& optimizer,
                                           const DataParallelOptions& options)
    : engine_(TrainingEngine::Of(trial.context())),
      model_(engine_->AddModel(model, WithoutClosures(optimizer), options)) {}

AdaptiveDataParallel::~AdaptiveDataParallel() = default;

void AdaptiveDataParallel::Step(const at::Tensor& loss) {
  CheckLoss(loss);
  engine_->Step(model_, loss);
}

void AdaptiveDataParallel::Rehearse(const std::function<void()>& microbatch) {
  engine_->Rehearse(microbatch);
}

AutocastGuard AdaptiveDataParallel::Autocast() const {
  const TrainedModel& model = engine_->model(model_);
  return {model.device_type(), model.autocast_type()};
}

double AdaptiveDataParallel::Evaluate(
    std::int64_t size, std::int64_t batch_size,
    const std::function<double(const at::Tensor& indices)>& sum_over) {
  return EvaluateSums(
             size, batch_size, 1,
             [&](const at::Tensor& indices) { return std::vector<double>{sum_over(indices)}; })
      .front();
}

std::vector<double> AdaptiveDataParallel::EvaluateSums(
    std::int64_t size, std::int64_t batch_size, std::size_t sums,
    const std::function<std::vector<double>(const at::Tensor& indices)>& sum_over) {
  return engine_->Evaluate(size, batch_size, sums, sum_over);
}

std::int64_t AdaptiveDataParallel::steps() const { return engine_->position().step; }
std::int64_t AdaptiveDataParallel::generation() const { return engine_->generation(); }
int AdaptiveDataParallel::rank() const { return engine_->group().rank(); }
int AdaptiveDataParallel::replicas() const { return engine_->group().size(); }
std::int64_t AdaptiveDataParallel::batch_size() const { return engine_->position().batch_size; }
double AdaptiveDataParallel::progress() const { return engine_->position().progress; }
std::int64_t AdaptiveDataParallel::skipped_steps() const {
  return engine_->position().skipped_steps;
}

}  // namespace espalier
