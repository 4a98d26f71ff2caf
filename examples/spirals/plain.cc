// A plain training loop in LibTorch, which tells two spirals apart. spirals.cc is the same,
// elastic; docs/elastic_training_loop.md goes from one to the other.

#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/randperm.h>
#include <torch/optim/sgd.h>

#include <cstdio>

#include "examples/spirals/spirals.h"

int main() {
  at::manual_seed(1);
  const Spirals training = MakeSpirals(4000, 1);
  const Spirals validation = MakeSpirals(1000, 2);

  Net net(32);
  torch::optim::SGD optimizer(net.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));

  for (int epoch = 1; epoch <= 20; ++epoch) {
    net.train();
    for (const at::Tensor& indices : at::randperm(training.size()).split(64)) {
      const at::Tensor scores = net.forward(training.points.index_select(0, indices));
      optimizer.zero_grad();
      at::cross_entropy_loss(scores, training.labels.index_select(0, indices)).backward();
      optimizer.step();
    }

    net.eval();
    const at::NoGradGuard no_grad;
    const at::Tensor guesses = net.forward(validation.points).argmax(1);
    const auto correct = guesses.eq(validation.labels).sum().item<double>();
    std::printf("%d %.4f\n", epoch, correct / static_cast<double>(validation.size()));
  }
}
