#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/module.h>
#include <torch/optim/sgd.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

// What benchmarks train, on made-up data, one samples' tensor each for all models of that name.
struct Workload {
  std::shared_ptr<torch::nn::Module> net;
  std::function<at::Tensor(const at::Tensor&)> forward;
  at::Tensor inputs;
  at::Tensor labels;
  std::int64_t batch_size = 0;
  std::string precision{};  // as DataParallelOptions::mixed_precision
  // Samples of an epoch; beyond those in memory their rows are taken again. They are many, so that
  // an epoch's end, with its checkpoint and its shuffling, does not fall into a measurement.
  static constexpr std::int64_t kDatasetSize = std::int64_t{1} << 21;

  at::Tensor Loss(const at::Tensor& indices) const {
    const at::Tensor rows =
        indices.to(inputs.device(), /*non_blocking=*/true).remainder(inputs.size(0));
    return torch::nn::functional::cross_entropy(forward(inputs.index_select(0, rows)),
                                                labels.index_select(0, rows));
  }
};

// On the device, net and samples. "convnet": that of examples/fashion_mnist, batch 128. "resnet18":
// that of examples/resnet18, images of 32x32, batch 16. "mlp": 784-1280-1200-10, 10 MB of
// parameters, batch 128. "small": 64-256-256-10, 0.35 MB, batch 256. "large":
// 1024-4096-4096-1024-10, 101 MB, batch 32. "transformer": 12 layers of 768 on texts of 128 tokens,
// 340 MB, batch 32; "transformer_bf16": the same in that precision. Nothing for any other name.
std::optional<Workload> MakeWorkload(const std::string& name, at::Device device);

// Momentum 0.9 and a rate so low that training on made-up data goes on for ever.
torch::optim::SGD MakeOptimizer(const Workload& workload);
