// Trains a character language model as an elastic trial.
//
//   char_lm [--epochs N] [--text FILE] [--set name=value ...]
//
// The metric is bits per character on every tenth window of the text.

#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/rnn.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <array>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <memory>
#include <numbers>
#include <stdexcept>
#include <string>
#include <vector>

#include "examples/flags.h"
#include "trial_runner/torch/adaptive_data_loader.h"
#include "trial_runner/torch/adaptive_data_parallel.h"
#include "trial_runner/torch/trial.h"

namespace {

constexpr std::int64_t kWindow = 64;  // characters that the model sees and predicts at once
constexpr std::int64_t kValidationShare = 10;  // every tenth window
constexpr std::int64_t kEvaluationBatch = 64;

// Windows of a text, as numbers of its characters. Row i of [windows, kWindow + 1] holds a window
// and the character after it, which is the next window's first.
struct Text {
  at::Tensor training, validation;  // int64
  std::int64_t characters = 0;      // that occur in it
};

Text ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const auto windows = static_cast<std::int64_t>(bytes.size() - 1) / kWindow;
  if (!file || bytes.empty() || windows < kValidationShare) {
    throw std::runtime_error("--text " + path + ": want a readable file of at least " +
                             std::to_string(kValidationShare * kWindow + 1) + " bytes");
  }
  Text text;
  std::array<std::int64_t, 256> number_of;
  number_of.fill(-1);
  at::Tensor numbers = at::empty({static_cast<std::int64_t>(bytes.size())}, at::kLong);
  auto* to = numbers.mutable_data_ptr<std::int64_t>();
  for (const char byte : bytes) {
    std::int64_t& number = number_of[static_cast<unsigned char>(byte)];
    if (number < 0) number = text.characters++;
    *to++ = number;
  }
  std::vector<at::Tensor> training, validation;
  for (std::int64_t i = 0; i < windows; ++i) {
    auto& part = i % kValidationShare == kValidationShare - 1 ? validation : training;
    part.push_back(numbers.narrow(0, i * kWindow, kWindow + 1).unsqueeze(0));
  }
  text.training = at::cat(training);
  text.validation = at::cat(validation);
  return text;
}

// Embedding, one GRU, linear. [n, kWindow] -> [n, kWindow, characters].
struct Model : torch::nn::Module {
  Model(std::int64_t characters, std::int64_t hidden, double dropout_share)
      : embedding(register_module("embedding", torch::nn::Embedding(characters, hidden / 2))),
        gru(register_module(
            "gru", torch::nn::GRU(torch::nn::GRUOptions(hidden / 2, hidden).batch_first(true)))),
        linear(register_module("linear", torch::nn::Linear(hidden, characters))),
        dropout(dropout_share) {}

  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor states = std::get<0>(gru(embedding(x)));
    return linear(at::dropout(states, dropout, is_training()));
  }

  torch::nn::Embedding embedding;
  torch::nn::GRU gru;
  torch::nn::Linear linear;
  double dropout;
};

// Mean over the characters of the rows that `indices` name, in nats.
at::Tensor Loss(Model& model, const at::Tensor& windows, const at::Tensor& indices) {
  const at::Tensor rows =
      windows.index_select(0, indices.to(windows.device(), /*non_blocking=*/true));
  const at::Tensor scores = model.forward(rows.narrow(1, 0, kWindow));
  return at::cross_entropy_loss(scores.flatten(0, 1), rows.narrow(1, 1, kWindow).flatten());
}

std::unique_ptr<torch::optim::Optimizer> MakeOptimizer(espalier::Trial& trial,
                                                       std::vector<at::Tensor> parameters) {
  const std::string name = trial.Get("optimizer", "adam");
  if (name == "adam") {
    return std::make_unique<torch::optim::Adam>(std::move(parameters),
                                                torch::optim::AdamOptions(trial.Get("lr", 3e-3)));
  }
  if (name == "sgd") {
    return std::make_unique<torch::optim::SGD>(
        std::move(parameters), torch::optim::SGDOptions(trial.Get("lr", 0.5)).momentum(0.9));
  }
  throw std::invalid_argument("parameter \"optimizer\" is \"" + name + "\": want adam or sgd");
}

void Train(int argc, char** argv, const Flags& flags) {
  espalier::Trial trial(argc, argv);
  Text text = ReadText(flags.Text("--text"));
  text.training = text.training.to(trial.device());
  text.validation = text.validation.to(trial.device());

  Model model(text.characters, trial.Get("hidden", std::int64_t{128}), trial.Get("dropout", 0.1));
  model.to(trial.device());
  const auto optimizer = MakeOptimizer(trial, model.parameters());
  espalier::AdaptiveDataParallel parallel(
      trial, model, *optimizer,
      {.scaling_rule = trial.Get("scaling_rule", ""),
       .base_batch_size = 16,
       .max_gradient_norm = trial.Get("max_gradient_norm", 1.0)});
  espalier::AdaptiveDataLoader loader(parallel, text.training.size(0),
                                      {.batch_size = trial.Get("batch_size", std::int64_t{16})});

  const auto step = [&](const at::Tensor& indices) {
    parallel.Step(Loss(model, text.training, indices));
  };
  model.train();
  loader.Rehearse(step);  // so that a group that this replica joins need not wait for its first one
  const std::int64_t epochs = flags.Count("--epochs", 1);
  while (loader.NextEpoch(epochs)) {
    model.train();
    while (const auto indices = loader.NextBatch()) step(*indices);
    const std::int64_t windows = text.validation.size(0);
    const double nats = parallel.Evaluate(windows, kEvaluationBatch, [&](const at::Tensor& part) {
      return Loss(model, text.validation, part).item<double>() * static_cast<double>(part.size(0));
    });
    trial.Report(loader.epoch(), nats / static_cast<double>(windows) / std::numbers::ln2);
  }
  trial.Finish();
}

}  // namespace

int main(int argc, char** argv) {
  const Flags flags(argc, argv,
                    {{"--epochs", "10"}, {"--text", "/usr/share/common-licenses/GPL-3"}});
  try {
    Train(argc, argv, flags);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "char_lm: %s\n", error.what());
    return 2;
  }
}
