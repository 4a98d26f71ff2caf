#include "tests/benchmarks/programs/workloads.h"

#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/any.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/transformercoder.h>
#include <torch/nn/modules/transformerlayer.h>

#include <utility>
#include <vector>

#include "examples/fashion_mnist/fashion_mnist_net.h"
#include "examples/resnet18/resnet18.h"

namespace {

constexpr std::int64_t kClasses = 10;
constexpr std::int64_t kSamplesInMemory = 2048;

template <typename Net>
Workload WorkloadOf(std::shared_ptr<Net> net, std::vector<std::int64_t> sample,
                    std::int64_t batch_size) {
  sample.insert(sample.begin(), kSamplesInMemory);
  return {.net = net,
          .forward = [net = net.get()](const at::Tensor& x) { return net->forward(x); },
          .inputs = at::randn(sample),
          .labels = at::randint(kClasses, {kSamplesInMemory}, at::kLong),
          .batch_size = batch_size};
}

Workload Perceptron(const std::vector<std::int64_t>& widths, std::int64_t batch_size) {
  torch::nn::Sequential net;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    if (i > 0) net->push_back(torch::nn::ReLU());
    net->push_back(torch::nn::Linear(widths[i], widths[i + 1]));
  }
  return WorkloadOf(net.ptr(), {widths.front()}, batch_size);
}

// Classifies texts. Without dropout, so that steps of both loops are alike.
class Transformer final : public torch::nn::Module {
 public:
  Transformer() {
    using torch::nn::TransformerEncoderLayerOptions;
    embedding_ = register_module("embedding", torch::nn::Embedding(kTokens, kWidth));
    const torch::nn::TransformerEncoderLayer layer(
        TransformerEncoderLayerOptions(kWidth, 12).dim_feedforward(4 * kWidth).dropout(0));
    encoder_ = register_module(
        "encoder", torch::nn::TransformerEncoder(torch::nn::TransformerEncoderOptions(layer, 12)));
    head_ = register_module("head", torch::nn::Linear(kWidth, kClasses));
  }

  at::Tensor forward(const at::Tensor& tokens) {
    return head_(encoder_(embedding_(tokens.t())).mean(0));
  }

  static constexpr std::int64_t kTokens = 1000;
  static constexpr std::int64_t kLength = 128;

 private:
  static constexpr std::int64_t kWidth = 768;
  torch::nn::Embedding embedding_{nullptr};
  torch::nn::TransformerEncoder encoder_{nullptr};
  torch::nn::Linear head_{nullptr};
};

Workload TransformerIn(const std::string& precision) {
  Workload workload = WorkloadOf(std::make_shared<Transformer>(), {1}, 32);
  workload.inputs =
      at::randint(Transformer::kTokens, {kSamplesInMemory, Transformer::kLength}, at::kLong);
  workload.precision = precision;
  return workload;
}

std::optional<Workload> MakeOnHost(const std::string& name) {
  if (name == "convnet") {
    return WorkloadOf(std::make_shared<FashionMnistNet>(16, 0.1), {1, 28, 28}, 128);
  }
  if (name == "resnet18") return WorkloadOf(std::make_shared<ResNet18>(kClasses), {3, 32, 32}, 16);
  if (name == "mlp") return Perceptron({784, 1280, 1200, kClasses}, 128);
  if (name == "small_mlp") return Perceptron({64, 256, 128, kClasses}, 64);
  if (name == "small") return Perceptron({64, 256, 256, kClasses}, 256);
  if (name == "large") return Perceptron({1024, 4096, 4096, 1024, kClasses}, 32);
  if (name == "transformer") return TransformerIn("");
  if (name == "transformer_bf16") return TransformerIn("bf16");
  return std::nullopt;
}

}  // namespace

std::optional<Workload> MakeWorkload(const std::string& name, at::Device device) {
  std::optional<Workload> made = MakeOnHost(name);
  if (!made) return std::nullopt;
  made->net->to(device);
  made->inputs = made->inputs.to(device);
  made->labels = made->labels.to(device);
  return made;
}

torch::optim::SGD MakeOptimizer(const Workload& workload) {
  return torch::optim::SGD(workload.net->parameters(),
                           torch::optim::SGDOptions(1e-4).momentum(0.9));
}
