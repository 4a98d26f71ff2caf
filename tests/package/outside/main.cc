// A program outside the tree: fits a line, elastically. usage: mine [--epochs N] [--set name=value]

#include <ATen/ops/linspace.h>
#include <ATen/ops/mse_loss.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <cstdlib>
#include <string>

#include "trial_runner/torch/adaptive_data_loader.h"
#include "trial_runner/torch/adaptive_data_parallel.h"
#include "trial_runner/torch/trial.h"

int main(int argc, char** argv) {
  std::int64_t epochs = 3;
  for (int i = 1; i + 1 < argc; ++i) {
    if (argv[i] == std::string("--epochs")) epochs = std::atoll(argv[i + 1]);
  }
  espalier::Trial trial(argc, argv);
  const at::Tensor x = at::linspace(-1, 1, 256).unsqueeze(1);
  const at::Tensor y = 3 * x + 1;

  torch::nn::Linear model(1, 1);
  torch::optim::SGD optimizer(model->parameters(), trial.Get("lr", 0.1));
  espalier::AdaptiveDataParallel parallel(trial, *model, optimizer);
  espalier::AdaptiveDataLoader loader(parallel, x.size(0), {.batch_size = 16});

  while (loader.NextEpoch(epochs)) {
    while (const auto indices = loader.NextBatch()) {
      parallel.Step(at::mse_loss(model(x.index_select(0, *indices)), y.index_select(0, *indices)));
    }
    const double error = parallel.Evaluate(x.size(0), 64, [&](const at::Tensor& indices) {
      const at::Tensor off = model(x.index_select(0, indices)) - y.index_select(0, indices);
      return off.square().sum().item<double>();
    });
    trial.Report(loader.epoch(), error / static_cast<double>(x.size(0)));
  }
  trial.Finish();
}
