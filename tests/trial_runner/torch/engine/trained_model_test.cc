// A model's part of a step, alone, with the host's loops and as on a device.

#include "trial_runner/torch/engine/trained_model.h"

#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "tests/trial_runner/collectives/forwarding_collectives.h"
#include "tests/trial_runner/torch/test_device.h"
#include "trial_runner/torch/engine/libtorch_parts.h"

namespace espalier {
namespace {

// The host's loops work on the host's memory, whatever the device of the test is.
struct LoneModel {
  explicit LoneModel(bool bucket_operations, const std::string& precision = "",
                     GradientKernel kernel = nullptr, bool frozen_bias = false)
      : device(bucket_operations ? TestDevice() : at::Device(at::kCPU)) {
    at::manual_seed(5);
    net = torch::nn::Linear(6, 3);
    net->bias.requires_grad_(!frozen_bias);
    net->to(device);
    optimizer = std::make_unique<torch::optim::Adam>(net->parameters(), 0.001);
    auto made = TrainedModel::Make(
        std::make_unique<LibTorchModel>(*net), std::make_unique<LibTorchOptimizer>(*optimizer),
        {.scaling_rule = "linear", .max_gradient_norm = 1.5, .mixed_precision = precision},
        bucket_operations, kernel);
    EXPECT_TRUE(made.ok()) << made.status();
    model = *std::move(made);
    position = model->FirstPosition();
    collectives = TestCollectives();
    EXPECT_TRUE(collectives->Form({1, 0, 1, collectives->Address()}).ok());
    model->StartGroup();
  }

  void Step(int number, bool finite) {
    at::manual_seed(100 + static_cast<std::uint64_t>(number));
    const double factor = finite ? 1 : std::numeric_limits<double>::quiet_NaN();
    const at::Tensor loss = net->forward(torch::randn({8, 6}).to(device)).pow(2).mean() * factor;
    model->Backward(loss, {}, position, *collectives, 1);
    model->Settle(position);
    model->Apply({.samples = 8, .batch_size = 8, .initial_batch = 8}, position);
  }

  const at::Device device;
  torch::nn::Linear net{nullptr};
  std::unique_ptr<torch::optim::Adam> optimizer;
  std::unique_ptr<TrainedModel> model;
  ModelPosition position;
  std::unique_ptr<Collectives> collectives;
};

// What the gradients turn out to be decides about the scale: it cannot wait, or the scale stays 1.
TEST(TrainedModel, AStepWithALossScaleIsNotKeptWhateverTheScale) {
  LoneModel fp16(/*bucket_operations=*/true, "fp16");
  fp16.position.loss_scale = 1;
  fp16.model->OpenPass({}, fp16.position, *fp16.collectives, 1);
  EXPECT_FALSE(fp16.model->kept());
  fp16.model->ClosePass();
  LoneModel plain(/*bucket_operations=*/true);
  plain.model->OpenPass({}, plain.position, *plain.collectives, 1);
  EXPECT_TRUE(plain.model->kept());
  plain.model->ClosePass();
}

// Notes how large the sums are that are begun.
class NotedSums : public ForwardingCollectives {
 public:
  NotedSums() : ForwardingCollectives(TestCollectives()) {}
  void StartAllReduceSum(const CollectiveBuffer& b) override {
    mb.push_back(b.count * 4 / (1 << 20));
    ForwardingCollectives::StartAllReduceSum(b);
  }

  std::vector<std::int64_t> mb;
};

// A large bucket costs NCCL no more to start than a small one, and only the first is to be early.
TEST(TrainedModel, BucketsAreLargerWhereGradientsGoFromDeviceToDevice) {
  torch::nn::Sequential net;
  for (int i = 0; i < 12; ++i) {
    net->push_back(torch::nn::Linear(torch::nn::LinearOptions(512, 512).bias(false)));  // 1 MB
  }
  net->to(TestDevice());
  torch::optim::SGD sgd(net->parameters(), 0.01);
  const auto made = TrainedModel::Make(std::make_unique<LibTorchModel>(*net),
                                       std::make_unique<LibTorchOptimizer>(sgd), {}, true, nullptr);
  ASSERT_TRUE(made.ok()) << made.status();
  TrainedModel& model = **made;
  for (const bool from_device_to_device : {false, true}) {
    NotedSums sums;
    ASSERT_TRUE(sums.Form({1, 0, 1, sums.Address()}).ok());
    model.StartGroup(from_device_to_device);
    const at::Tensor loss = net->forward(torch::ones({2, 512}).to(TestDevice())).mean();
    model.Backward(loss, {}, model.FirstPosition(), sums, /*replicas=*/2);
    ASSERT_TRUE(model.Reduce().ok());
    const std::vector<std::int64_t> host{4, 4, 4};
    const std::vector<std::int64_t> device{1, 11};
    EXPECT_EQ(sums.mb, from_device_to_device ? device : host);
  }
}

// As torch.amp.GradScaler does, which divides the scale out of the gradients where they lie.
TEST(TrainedModel, ALossScaleOfTheProgramsOwnIsNoNoise) {
  LoneModel plain(/*bucket_operations=*/false);
  LoneModel scaled(/*bucket_operations=*/false);
  for (const int microbatches : {1, 2}) {
    bool measured = false;
    for (int step = 0; step < 6; ++step) {
      const double scale = step < 3 ? 1024 : 256;
      for (LoneModel* lone : {&plain, &scaled}) {
        const double own = lone == &scaled ? scale : 1;
        for (int i = 0; i < microbatches; ++i) {
          const int seed = 100 * step + i;
          at::manual_seed(static_cast<std::uint64_t>(seed));
          const at::Tensor loss = lone->net->forward(torch::randn({8, 6})).pow(2).mean();
          lone->model->Backward(
              loss * own,
              {.weight = 1.0 / microbatches, .first = i == 0, .last = i + 1 == microbatches},
              lone->position, *lone->collectives, 1);
        }
        if (!lone->model->kept()) {
          GradientBuckets& gradients = lone->model->gradients();
          gradients.SetTail(GradientBuckets::kMicrobatches, microbatches);
          gradients.SetTail(GradientBuckets::kInverseSize, microbatches / 8.0);
        }
        ASSERT_TRUE(lone->model->Reduce().ok());
        for (const auto& p : lone->net->parameters()) p.grad().div_(own);
        const auto samples = 8.0 * microbatches;
        ASSERT_TRUE(lone->model->Apply(
            {.samples = samples, .batch_size = samples, .initial_batch = 8, .loss_scale = own},
            lone->position));
      }
      SCOPED_TRACE(testing::Message() << microbatches << " microbatches, step " << step);
      const NoiseAverages& expected = plain.position.noise.at(0);
      const NoiseAverages& found = scaled.position.noise.at(0);
      EXPECT_NEAR(found.Sqr(), expected.Sqr(), 1e-4 * expected.Sqr());
      EXPECT_NEAR(found.Var(8), expected.Var(8), 1e-4 * expected.Var(8));
      measured = measured || expected.Var(8) > 0;
    }
    EXPECT_TRUE(measured);
  }
}

TEST(TrainedModelDeathTest, WhatWasFrozenFirstAndIsNotAnyMoreIsNamed) {
  LoneModel frozen(/*bucket_operations=*/false, "", nullptr, /*frozen_bias=*/true);
  LoneModel trained(/*bucket_operations=*/false);
  for (LoneModel* each : {&frozen, &trained}) {
    each->model->RefuseUnfrozen();  // there is nothing to refuse
    each->net->bias.requires_grad_(false);
    each->Step(0, true);
    each->model->RefuseUnfrozen();
    each->net->bias.requires_grad_(true);
  }
  trained.model->RefuseUnfrozen();
  EXPECT_EXIT(frozen.model->RefuseUnfrozen(), testing::ExitedWithCode(2),
              "parameter \"bias\" required no gradient when the model was wrapped");
}

TEST(TrainedModel, GradientsThatTheProgramFinds) {
  LoneModel lone(/*bucket_operations=*/false);
  EXPECT_FALSE(lone.model->HasFiniteGradients()) << "there are none";
  const auto backward = [&](double factor) {
    lone.model->Backward(lone.net->forward(torch::ones({8, 6})).mean() * factor, {}, lone.position,
                         *lone.collectives, 1);
  };
  backward(1);
  EXPECT_TRUE(lone.model->HasFiniteGradients());
  backward(std::numeric_limits<double>::infinity());
  EXPECT_FALSE(lone.model->HasFiniteGradients());
}

// Steps of Adam are counted in its scale: one that the device has left out counts in none.
class TrainedModelOnADevice : public ::testing::TestWithParam<GradientKernel> {};

INSTANTIATE_TEST_SUITE_P(Kernels, TrainedModelOnADevice,
                         ::testing::Values(GradientKernel{nullptr}, TestKernel()),
                         [](const auto& kernel) {
                           return kernel.param == nullptr ? "LibTorchs" : "Ours";
                         });

TEST_P(TrainedModelOnADevice, NoiseAfterAStepThatWasLeftOutIsThatOfTheHostsLoops) {
  LoneModel host(/*bucket_operations=*/false);
  LoneModel device(/*bucket_operations=*/true, "", GetParam());
  for (int i = 0; i < 12; ++i) {
    for (LoneModel* each : {&host, &device}) each->Step(i, i != 8);
  }
  device.model->Settle(device.position);
  ASSERT_FALSE(host.position.noise.at(0).empty());
  EXPECT_NEAR(device.position.noise.at(0).Sqr(), host.position.noise.at(0).Sqr(),
              1e-3 * std::abs(host.position.noise.at(0).Sqr()));
  EXPECT_NEAR(device.position.noise.at(0).Var(8), host.position.noise.at(0).Var(8),
              1e-3 * std::abs(host.position.noise.at(0).Var(8)));
  EXPECT_TRUE(at::allclose(device.net->weight.cpu(), host.net->weight, 1e-5, 1e-6));
}

}  // namespace
}  // namespace espalier
