// A model's part of a step, alone, with the host's loops and as on a device.

#include "trial_runner/torch/trained_model.h"

#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/types.h>

#include <limits>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "trial_runner/collectives/gloo_collectives.h"
#include "trial_runner/torch/libtorch_parts.h"

namespace espalier {
namespace {

struct LoneModel {
  explicit LoneModel(bool bucket_operations, const std::string& precision = "") {
    at::manual_seed(5);
    net = torch::nn::Linear(6, 3);
    optimizer = std::make_unique<torch::optim::Adam>(net->parameters(), 0.001);
    auto made = TrainedModel::Make(
        std::make_unique<LibTorchModel>(*net), std::make_unique<LibTorchOptimizer>(*optimizer),
        {.scaling_rule = "linear", .mixed_precision = precision}, bucket_operations);
    EXPECT_TRUE(made.ok()) << made.status();
    model = *std::move(made);
    position = model->FirstPosition();
    collectives = *MakeGlooCollectives({});
    EXPECT_TRUE(collectives->Form({1, 0, 1, collectives->Address()}).ok());
    model->StartGroup();
  }

  void Step(int number, bool finite) {
    at::manual_seed(100 + number);
    const double factor = finite ? 1 : std::numeric_limits<double>::quiet_NaN();
    const at::Tensor loss = net->forward(torch::randn({8, 6})).pow(2).mean() * factor;
    model->Backward(loss, {}, position, *collectives, 1);
    model->Settle(position);
    model->Apply({.samples = 8, .batch_size = 8, .initial_batch = 8}, position);
  }

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

// Steps of Adam are counted in its scale: one that the device has left out counts in none.
TEST(TrainedModel, NoiseAfterAStepThatWasLeftOutIsThatOfTheHostsLoops) {
  LoneModel host(/*bucket_operations=*/false);
  LoneModel device(/*bucket_operations=*/true);
  for (int i = 0; i < 12; ++i) {
    for (LoneModel* each : {&host, &device}) each->Step(i, i != 8);
  }
  device.model->Settle(device.position);
  ASSERT_FALSE(host.position.noise.at(0).empty());
  EXPECT_NEAR(device.position.noise.at(0).Sqr(), host.position.noise.at(0).Sqr(),
              1e-3 * std::abs(host.position.noise.at(0).Sqr()));
  EXPECT_NEAR(device.position.noise.at(0).Var(8), host.position.noise.at(0).Var(8),
              1e-3 * std::abs(host.position.noise.at(0).Var(8)));
  EXPECT_TRUE(at::allclose(device.net->weight, host.net->weight, 1e-5, 1e-6));
}

}  // namespace
}  // namespace espalier
