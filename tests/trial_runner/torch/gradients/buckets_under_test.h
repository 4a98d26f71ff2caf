#pragma once

// What the tests of GradientBuckets have in common: a model, and the ways in which its gradients
// are summed and measured.

#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/trial_runner/torch/test_device.h"
#include "trial_runner/collectives/gloo/gloo_collectives.h"
#include "trial_runner/torch/gradients/gradient_buckets.h"

namespace espalier {

inline constexpr std::int64_t kSmallBuckets = 200;  // bytes: each layer below has several

// The last layer gets no gradient.
struct Net : torch::nn::Module {
  Net()
      : a(register_module("a", torch::nn::Linear(6, 9))),
        b(register_module("b", torch::nn::Linear(9, 4))),
        unused(register_module("unused", torch::nn::Linear(3, 3))) {}
  at::Tensor forward(const at::Tensor& x) { return b(at::tanh(a(x))); }
  torch::nn::Linear a, b, unused;
};

struct Data {
  Data() {
    const auto generator = at::detail::createCPUGenerator(3);
    x = torch::randn({12, 6}, generator);
    y = torch::randn({12, 4}, generator);
  }
  at::Tensor Loss(Net& net, std::int64_t begin, std::int64_t size) const {
    const at::Device device = net.a->weight.device();
    return torch::nn::functional::mse_loss(net.forward(x.narrow(0, begin, size).to(device)),
                                           y.narrow(0, begin, size).to(device));
  }
  at::Tensor x, y;
};

// The same weights each time.
inline std::unique_ptr<Net> MakeNet(at::Device device = TestDevice()) {
  at::manual_seed(5);
  auto net = std::make_unique<Net>();
  net->to(device);
  return net;
}

// The first layer is one optimizer group, the others another.
inline std::vector<GradientBuckets::Parameter> ParametersOf(Net& net) {
  std::vector<GradientBuckets::Parameter> parameters;
  for (const auto& p : net.a->parameters()) parameters.push_back({p, 0});
  for (const auto& p : net.b->parameters()) parameters.push_back({p, 1});
  for (const auto& p : net.unused->parameters()) parameters.push_back({p, 1});
  return parameters;
}

inline std::unique_ptr<Collectives> Alone() {
  auto made = MakeGlooCollectives({});
  EXPECT_TRUE(made.ok()) << made.status();
  EXPECT_TRUE((*made)->Form({1, 0, 1, (*made)->Address()}).ok());
  return *std::move(made);
}

inline double Sqr(const torch::nn::Module& module) {
  double sum = 0;
  for (const auto& p : module.parameters()) sum += p.grad().pow(2).sum().item<double>();
  return sum;
}

inline void ExpectSameGradients(Net& net, Net& plain) {
  for (const auto& item : net.named_parameters()) {
    const at::Tensor expected = plain.named_parameters()[item.key()].grad();
    ASSERT_EQ(item.value().grad().defined(), expected.defined()) << item.key();
    if (expected.defined()) {
      EXPECT_TRUE(at::allclose(item.value().grad().cpu(), expected.cpu(), 1e-5, 1e-6))
          << item.key();
    }
  }
}

// With the host's loops, and with the operations that a GPU's memory is worked on by, here on the
// CPU's: LibTorch's and our kernel, whose threads are loops there.
using Arithmetic = GradientBuckets::Arithmetic;
struct Way {
  std::string name;
  Arithmetic arithmetic = Arithmetic::kBucketOperations;
  GradientKernel kernel = nullptr;
};
class GradientBucketsTest : public ::testing::TestWithParam<Way> {
 protected:
  static GradientBuckets MakeBuckets(std::vector<GradientBuckets::Parameter> parameters,
                                     std::size_t groups, std::int64_t bytes = kSmallBuckets) {
    return GradientBuckets(std::move(parameters), groups, bytes, GetParam().arithmetic,
                           GetParam().kernel);
  }
};

inline std::vector<Way> OperationWays() {
  // On a GPU that it cannot run on, this fails instead of testing LibTorch's operations twice.
  EXPECT_NE(TestKernel(), nullptr);
  return {{"BucketOperations"},
          {TestDevice().is_cpu() ? "KernelOnTheHost" : "KernelOnTheGpu",
           Arithmetic::kBucketOperations, TestKernel()}};
}

// The host's loops work on the host's memory alone.
inline std::vector<Way> Ways() {
  std::vector<Way> ways = OperationWays();
  if (TestDevice().is_cpu()) ways.push_back({"HostLoops", Arithmetic::kHostLoops});
  return ways;
}

inline std::string NameOfWay(const ::testing::TestParamInfo<Way>& way) { return way.param.name; }

inline void ExpectNear(const std::vector<double>& a, const std::vector<double>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5 * (1 + std::abs(a[i])));
}

// Preconditioners that differ within a group, as a parameter's do which had a gradient less often.
inline std::vector<Preconditioner> SomePreconditioners(Net& net, int step) {
  at::manual_seed(100 + static_cast<std::uint64_t>(step));
  std::vector<Preconditioner> all;
  for (const auto& p : ParametersOf(net)) {
    all.push_back({torch::rand(p.tensor.sizes()).to(p.tensor.device()), 1.0 + 0.1 * step, 1e-3});
  }
  all[1].factor *= 2;
  all[2] = Preconditioner{};  // not scaled at all
  return all;
}

}  // namespace espalier
