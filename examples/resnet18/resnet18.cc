// Trains ResNet-18 on images of 32x32 as an elastic trial.
//
//   resnet18 [--epochs N] [--data DIR | --data synthetic] [--images N] [--set name=value ...]
//
// The metric is accuracy on the last tenth of the images.

#include "examples/resnet18/resnet18.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "examples/fashion_mnist/fashion_mnist_data.h"
#include "examples/flags.h"
#include "trial_runner/torch/adaptive_data_loader.h"
#include "trial_runner/torch/adaptive_data_parallel.h"
#include "trial_runner/torch/trial.h"

namespace {

constexpr std::int64_t kClasses = 10;
constexpr std::int64_t kEvaluationBatch = 100;
constexpr std::int64_t kSyntheticImages = 10'000;  // where --images does not say

// Each class is a smooth pattern of its own, each image its class's pattern in noise. The same for
// every trial and replica.
Images MakeSynthetic(std::int64_t images) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(std::uint64_t{18});
  const at::Tensor patterns = at::upsample_bilinear2d(
      at::randn({kClasses, 3, 4, 4}, generator, at::kFloat), {32, 32}, /*align_corners=*/false);
  const at::Tensor labels = at::randint(kClasses, {images}, generator, at::kLong);
  const at::Tensor noise = at::randn({images, 3, 32, 32}, generator, at::kFloat);
  return {patterns.index_select(0, labels) + 2 * noise, labels};
}

// `images` of them, or all where it is 0.
Images ReadImages(const std::string& where, std::int64_t images) {
  if (where == "synthetic") return MakeSynthetic(images > 0 ? images : kSyntheticImages);
  Images read = ReadFashionMnist(where, "train");
  if (images > 0 && images < read.size()) {
    read = {read.pixels.narrow(0, 0, images), read.labels.narrow(0, 0, images)};
  }
  // 28x28 gets a border of background, black before normalisation.
  return {at::constant_pad_nd(read.pixels, {2, 2, 2, 2}, read.pixels.min().item()), read.labels};
}

// [n,3,32,32]: grey images three times over.
at::Tensor Pixels(const Images& images, const at::Tensor& indices) {
  return images.pixels.index_select(0, indices).expand({-1, 3, -1, -1});
}

std::unique_ptr<torch::optim::Optimizer> MakeOptimizer(espalier::Trial& trial,
                                                       std::vector<at::Tensor> parameters) {
  const std::string name = trial.Get("optimizer", "sgd");
  if (name == "sgd") {
    return std::make_unique<torch::optim::SGD>(
        std::move(parameters),
        torch::optim::SGDOptions(trial.Get("lr", 0.05)).momentum(0.9).weight_decay(5e-4));
  }
  if (name == "adam") {
    return std::make_unique<torch::optim::Adam>(std::move(parameters),
                                                torch::optim::AdamOptions(trial.Get("lr", 1e-3)));
  }
  throw std::invalid_argument("parameter \"optimizer\" is \"" + name + "\": want sgd or adam");
}

void Train(int argc, char** argv, const Flags& flags) {
  espalier::Trial trial(argc, argv);
  const Images images =
      ReadImages(flags.Text("--data"), flags.Count("--images", 0)).To(trial.device());
  const std::int64_t validation_images = images.size() / 10;
  const std::int64_t training_images = images.size() - validation_images;
  if (validation_images < 1) throw std::invalid_argument("--images: want 0 (all), or 10 or more");

  ResNet18 net(kClasses);
  net.to(trial.device());
  const auto optimizer = MakeOptimizer(trial, net.parameters());
  espalier::AdaptiveDataParallel parallel(trial, net, *optimizer,
                                          {.scaling_rule = trial.Get("scaling_rule", ""),
                                           .base_batch_size = 64,
                                           .mixed_precision = trial.Get("precision", "")});
  espalier::AdaptiveDataLoader loader(parallel, training_images,
                                      {.batch_size = trial.Get("batch_size", std::int64_t{64})});

  // The forward pass alone is in the trial's precision; backward follows it.
  const auto scores = [&](const at::Tensor& indices) {
    const auto precision = parallel.Autocast();
    return net.forward(Pixels(images, indices)).to(at::kFloat);
  };
  const auto step = [&](const at::Tensor& batch) {
    const at::Tensor indices = batch.to(trial.device(), /*non_blocking=*/true);
    parallel.Step(at::cross_entropy_loss(scores(indices), images.labels.index_select(0, indices)));
  };
  net.train();
  loader.Rehearse(step);  // so that a group that this replica joins need not wait for its first one
  const std::int64_t epochs = flags.Count("--epochs", 1);
  while (loader.NextEpoch(epochs)) {
    net.train();
    while (const auto batch = loader.NextBatch()) step(*batch);
    const double correct = parallel.Evaluate(
        validation_images, kEvaluationBatch, [&](const at::Tensor& validation_indices) {
          const at::Tensor indices = validation_indices.to(trial.device()) + training_images;
          const at::Tensor guesses = scores(indices).argmax(1);
          return guesses.eq(images.labels.index_select(0, indices)).sum().item<double>();
        });
    trial.Report(loader.epoch(), correct / static_cast<double>(validation_images));
  }
  trial.Finish();
}

}  // namespace

int main(int argc, char** argv) {
  const Flags flags(argc, argv, {{"--epochs", "5"}, {"--data", kDefaultData}, {"--images", "0"}});
  try {
    Train(argc, argv, flags);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "resnet18: %s\n", error.what());
    return 2;
  }
}
