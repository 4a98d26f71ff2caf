#include "trial_runner/torch/adaptive_data_parallel.h"

#include <utility>

#include "trial_runner/torch/training_engine.h"
#include "trial_runner/torch/trial.h"

namespace espalier {

AdaptiveDataParallel::AdaptiveDataParallel(Trial& trial, torch::nn::Module& model,
                                           torch::optim::Optimizer& optimizer,
                                           DataParallelOptions options)
    : engine_(std::make_unique<TrainingEngine>(trial.context(), model, optimizer,
                                               std::move(options))) {}

AdaptiveDataParallel::~AdaptiveDataParallel() = default;

void AdaptiveDataParallel::Step(const at::Tensor& loss) { engine_->Step(loss); }

double AdaptiveDataParallel::Evaluate(
    std::int64_t size, std::int64_t batch_size,
    const std::function<double(const at::Tensor& indices)>& sum_over) {
  return engine_
      ->Evaluate(size, batch_size, 1,
                 [&](const at::Tensor& indices) { return std::vector{sum_over(indices)}; })
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

}  // namespace espalier
