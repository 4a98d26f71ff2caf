#include "trial_runner/torch/engine/libtorch_parts.h"

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace espalier {
namespace {

std::vector<bool> ModesOf(torch::nn::Module& module) {
  std::vector<bool> modes{module.is_training()};
  for (const auto& each : module.modules(/*include_self=*/false)) {
    modes.push_back(each->is_training());
  }
  return modes;
}

// A program that does not train a part of its model has that part's statistics stand still.
TEST(LibTorchModel, AnEvaluationLeavesTheModeOfEachModuleAsItWas) {
  struct Net : torch::nn::Module {
    Net() {
      inner->push_back(torch::nn::BatchNorm1d(4));
      inner->push_back(torch::nn::Linear(4, 4));
      register_module("inner", inner);
      register_module("last", last);
    }
    torch::nn::Sequential inner;
    torch::nn::BatchNorm1d last{4};
  } net;
  LibTorchModel model(net);
  net.inner->ptr(0)->eval();
  const std::vector<bool> before{true, true, false, true, true};
  ASSERT_EQ(ModesOf(net), before);
  model.BeginEvaluation();
  EXPECT_EQ(ModesOf(net), std::vector<bool>(5, false));
  model.EndEvaluation();
  EXPECT_EQ(ModesOf(net), before);
  net.eval();
  model.BeginEvaluation();
  model.EndEvaluation();
  EXPECT_EQ(ModesOf(net), std::vector<bool>(5, false));
}

TEST(LibTorchModel, ABufferOfAnotherShapeIsTheSameTensorAfterwards) {
  struct Observed : torch::nn::Module {
    Observed() : seen(register_buffer("seen", at::zeros({1}))) {}
    at::Tensor seen;
  } net;
  LibTorchModel model(net);
  ASSERT_TRUE(model.SetBuffers({{"seen", at::ones({3})}}).ok());
  EXPECT_TRUE(at::equal(net.seen, at::ones({3})));
  EXPECT_TRUE(at::equal(model.Buffers().front().tensor, net.seen));
  const absl::Status unknown = model.SetBuffers({{"other", at::ones({3})}});
  EXPECT_THAT(std::string(unknown.message()), ::testing::HasSubstr("no buffer \"other\""));
}

}  // namespace
}  // namespace espalier
