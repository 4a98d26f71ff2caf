// Trains a small convolutional net on Fashion-MNIST as an elastic trial.
//
//   fashion_mnist [--epochs N] [--images N] [--data DIR] [--set name=value ...]
//                                                      train (alone, or under tuner)
//   fashion_mnist --evaluate CHECKPOINT [--data DIR]   accuracy on the test images
//
// The metric is accuracy on the last 5,000 training images; the 10,000 test images are only looked
// at by --evaluate. --images trains on the first N of the other 55,000.

#include <torch/nn/functional/loss.h>
#include <torch/optim/sgd.h>
#include <torch/serialize.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "examples/fashion_mnist/fashion_mnist_data.h"
#include "examples/fashion_mnist/fashion_mnist_net.h"
#include "trial_runner/torch/adaptive_data_loader.h"
#include "trial_runner/torch/adaptive_data_parallel.h"
#include "trial_runner/torch/trial.h"

namespace {

namespace F = torch::nn::functional;

constexpr std::int64_t kValidationImages = 5000;
constexpr std::int64_t kEvaluationBatch = 500;

struct Arguments {
  std::int64_t epochs = 5;
  std::int64_t images = 0;  // 0: all but those for validation
  std::string data = kDefaultData;
  std::string evaluate;
};

Arguments Parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    const bool has_value = i + 1 < argc;
    if (flag == "--epochs" && has_value) {
      arguments.epochs = std::atoll(argv[++i]);
    } else if (flag == "--images" && has_value) {
      arguments.images = std::atoll(argv[++i]);
      if (arguments.images < 1) {
        std::fprintf(stderr, "fashion_mnist: --images %s: want 1 or more\n", argv[i]);
        std::exit(2);
      }
    } else if (flag == "--data" && has_value) {
      arguments.data = argv[++i];
    } else if (flag == "--evaluate" && has_value) {
      arguments.evaluate = argv[++i];
    } else if (flag == "--set" && has_value) {
      ++i;  // read by espalier::Trial
    } else {
      std::fprintf(stderr,
                   "fashion_mnist: \"%s\": want --epochs N, --images N, --data DIR, --evaluate "
                   "CHECKPOINT or --set name=value\n",
                   flag.c_str());
      std::exit(2);
    }
  }
  if (arguments.epochs < 1) {
    std::fprintf(stderr, "fashion_mnist: --epochs: want 1 or more\n");
    std::exit(2);
  }
  return arguments;
}

std::int64_t CountCorrect(FashionMnistNet& net, const Images& images, const at::Tensor& which) {
  const at::Tensor indices = which.to(images.labels.device(), /*non_blocking=*/true);
  const at::Tensor guesses = net.forward(images.pixels.index_select(0, indices)).argmax(1);
  return guesses.eq(images.labels.index_select(0, indices)).sum().item<std::int64_t>();
}

int Evaluate(const Arguments& arguments) {
  const Images test = ReadFashionMnist(arguments.data, "t10k");
  torch::serialize::InputArchive archive, model;
  archive.load_from(arguments.evaluate);
  archive.read("model", model);
  // The width is in the checkpoint itself: the first convolution's channels.
  torch::serialize::InputArchive conv1;
  at::Tensor weight;
  model.read("conv1", conv1);
  conv1.read("weight", weight);
  FashionMnistNet net(weight.size(0), 0);
  net.load(model);
  net.eval();
  const at::NoGradGuard no_grad;
  std::int64_t correct = 0;
  for (std::int64_t begin = 0; begin < test.size(); begin += kEvaluationBatch) {
    const std::int64_t end = std::min(begin + kEvaluationBatch, test.size());
    correct += CountCorrect(net, test, at::arange(begin, end));
  }
  std::printf("test accuracy on %lld images: %.4f\n", static_cast<long long>(test.size()),
              static_cast<double>(correct) / static_cast<double>(test.size()));
  return 0;
}

int Train(int argc, char** argv, const Arguments& arguments) {
  espalier::Trial trial(argc, argv);
  const Images images = ReadFashionMnist(arguments.data, "train").To(trial.device());
  const std::int64_t validated_from = images.size() - kValidationImages;
  const std::int64_t training_images =
      arguments.images > 0 ? std::min(arguments.images, validated_from) : validated_from;

  FashionMnistNet net(trial.Get("width", 16), trial.Get("dropout", 0.1));
  net.to(trial.device());
  torch::optim::SGD optimizer(net.parameters(),
                              torch::optim::SGDOptions(trial.Get("lr", 0.02)).momentum(0.9));
  espalier::AdaptiveDataParallel parallel(
      trial, net, optimizer,
      {.scaling_rule = trial.Get("scaling_rule", "adascale"), .base_batch_size = 64});
  espalier::AdaptiveDataLoader loader(parallel, training_images,
                                      {.batch_size = trial.Get("batch_size", std::int64_t{128})});

  const auto step = [&](const at::Tensor& batch) {
    const at::Tensor indices = batch.to(trial.device(), /*non_blocking=*/true);
    const at::Tensor scores = net.forward(images.pixels.index_select(0, indices));
    parallel.Step(F::cross_entropy(scores, images.labels.index_select(0, indices)));
  };
  loader.Rehearse(step);  // so that a group that this replica joins need not wait for its first one

  while (loader.NextEpoch(arguments.epochs)) {
    net.train();
    while (const auto batch = loader.NextBatch()) step(*batch);
    const double correct =
        parallel.Evaluate(kValidationImages, kEvaluationBatch, [&](const at::Tensor& indices) {
          return static_cast<double>(CountCorrect(net, images, indices + validated_from));
        });
    trial.Report(loader.epoch(), correct / static_cast<double>(kValidationImages));
  }
  trial.Finish();
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = Parse(argc, argv);
  try {
    return arguments.evaluate.empty() ? Train(argc, argv, arguments) : Evaluate(arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fashion_mnist: %s\n", error.what());
    return 2;
  }
}
