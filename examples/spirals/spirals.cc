// Tells two spirals apart, as an elastic trial. plain.cc is the same without Espalier;
// docs/elastic_training_loop.md goes from one to the other.
//
//   spirals [--epochs N] [--set name=value ...]

#include "examples/spirals/spirals.h"

#include <ATen/ops/cross_entropy_loss.h>
#include <torch/optim/sgd.h>

#include "examples/flags.h"
#include "trial_runner/torch/adaptive_data_loader.h"
#include "trial_runner/torch/adaptive_data_parallel.h"
#include "trial_runner/torch/trial.h"

int main(int argc, char** argv) {
  const Flags flags(argc, argv, {{"--epochs", "20"}});
  espalier::Trial trial(argc, argv);
  const Spirals training = MakeSpirals(4000, 1).To(trial.device());
  const Spirals validation = MakeSpirals(1000, 2).To(trial.device());

  Net net(trial.Get("width", 32));
  net.to(trial.device());
  torch::optim::SGD optimizer(net.parameters(),
                              torch::optim::SGDOptions(trial.Get("lr", 0.1)).momentum(0.9));
  espalier::AdaptiveDataParallel parallel(trial, net, optimizer);
  espalier::AdaptiveDataLoader loader(parallel, training.size(),
                                      {.batch_size = trial.Get("batch_size", std::int64_t{64})});

  const auto step = [&](const at::Tensor& batch) {
    const at::Tensor indices = batch.to(trial.device(), /*non_blocking=*/true);
    const at::Tensor scores = net.forward(training.points.index_select(0, indices));
    parallel.Step(at::cross_entropy_loss(scores, training.labels.index_select(0, indices)));
  };
  loader.Rehearse(step);
  while (loader.NextEpoch(flags.Count("--epochs", 1))) {
    net.train();
    while (const auto batch = loader.NextBatch()) step(*batch);

    const double correct = parallel.Evaluate(validation.size(), 250, [&](const at::Tensor& part) {
      const at::Tensor indices = part.to(trial.device());
      const at::Tensor guesses = net.forward(validation.points.index_select(0, indices)).argmax(1);
      return guesses.eq(validation.labels.index_select(0, indices)).sum().item<double>();
    });
    trial.Report(loader.epoch(), correct / static_cast<double>(validation.size()));
  }
  trial.Finish();
}
