// Steps on a device in one or two launches, beside the optimizer's own steps.

#include "trial_runner/torch/gradients/fused_optimizer.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>

#include <functional>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/trial_runner/torch/test_device.h"

namespace espalier {
namespace {

namespace optim = torch::optim;

using Groups = std::vector<optim::OptimizerParamGroup>;
using Optimizer = std::unique_ptr<optim::Optimizer>;

struct Kind {
  std::string name;
  std::function<Optimizer(Groups)> make;
};

template <typename Class, typename Options>
Kind Of(const std::string& name, const Options& options) {
  return {name, [options](Groups groups) -> Optimizer {
            for (auto& group : groups) group.set_options(std::make_unique<Options>(options));
            groups.back().options().set_lr(options.lr() / 4);
            return std::make_unique<Class>(std::move(groups), options);
          }};
}

std::vector<Kind> Kinds() {
  return {
      Of<optim::SGD>("Sgd", optim::SGDOptions(0.1)),
      Of<optim::SGD>("SgdDecay", optim::SGDOptions(0.1).weight_decay(0.1)),
      Of<optim::SGD>("SgdMomentum", optim::SGDOptions(0.1).momentum(0.9).dampening(0.3)),
      Of<optim::SGD>("SgdNesterov",
                     optim::SGDOptions(0.1).momentum(0.9).nesterov(true).weight_decay(0.01)),
      Of<optim::Adam>("Adam", optim::AdamOptions(0.1).weight_decay(0.1)),
      Of<optim::Adam>("AdamAmsgrad", optim::AdamOptions(0.1).amsgrad(true)),
      Of<optim::AdamW>("AdamW", optim::AdamWOptions(0.1).weight_decay(0.1)),
      Of<optim::AdamW>("AdamWAmsgrad", optim::AdamWOptions(0.1).amsgrad(true)),
      Of<optim::Adagrad>("Adagrad", optim::AdagradOptions(0.1).lr_decay(0.1).weight_decay(0.1)),
  };
}

// Four parameters in two groups, one of them in another order of elements.
struct Model {
  explicit Model(const Kind& kind) {
    at::manual_seed(3);
    const std::vector<std::vector<std::int64_t>> shapes{{5, 7}, {7}, {2, 3, 4, 5}, {3}};
    for (const auto& shape : shapes) {
      parameters.push_back(torch::randn(shape, TestDevice()));
    }
    parameters[2] = parameters[2].contiguous(at::MemoryFormat::ChannelsLast);
    for (at::Tensor& p : parameters) p.requires_grad_();
    Groups groups;
    groups.emplace_back(std::vector<at::Tensor>{parameters[0], parameters[1]});
    groups.emplace_back(std::vector<at::Tensor>{parameters[2], parameters[3]});
    optimizer = kind.make(std::move(groups));
  }
  // The last parameter has no gradient in the first steps, and none now and then.
  void SetGradients(int step, double factor = 1) {
    at::manual_seed(50 + static_cast<std::uint64_t>(step));
    for (at::Tensor& p : parameters) p.mutable_grad() = torch::randn_like(p) * factor;
    if (step < 2 || step % 3 == 0) parameters[3].mutable_grad().reset();
  }
  std::vector<at::Tensor> parameters;
  Optimizer optimizer;
};

void ExpectSame(const Model& a, const Model& b) {
  for (std::size_t i = 0; i < a.parameters.size(); ++i) {
    EXPECT_TRUE(at::allclose(a.parameters[i], b.parameters[i], 1e-5, 1e-6)) << "parameter " << i;
  }
}

void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

class FusedOptimizerTest : public ::testing::TestWithParam<Kind> {};

INSTANTIATE_TEST_SUITE_P(Kinds, FusedOptimizerTest, ::testing::ValuesIn(Kinds()),
                         [](const auto& kind) { return kind.param.name; });

TEST_P(FusedOptimizerTest, StepsAsTheOptimizerAndTakesTurnsWithIt) {
  Model own(GetParam());
  Model fused(GetParam());
  const auto steps = FusedOptimizer::For(*fused.optimizer);
  ASSERT_NE(steps, nullptr);
  for (int step = 0; step < 12; ++step) {
    SCOPED_TRACE(step);
    own.SetGradients(step);
    fused.SetGradients(step);
    own.optimizer->step();
    if (step == 5 || step == 9) {
      fused.optimizer->step();
    } else {
      steps->Step(step % 2 == 0 ? at::Tensor() : at::full({}, 0.0F, TestDevice()));
    }
    ExpectSame(own, fused);
  }
}

// The first step too, which optimizers tell by what they do not know yet.
TEST_P(FusedOptimizerTest, AStepThatTheDeviceLeavesOutLeavesNoTrace) {
  Model own(GetParam());
  Model fused(GetParam());
  const auto steps = FusedOptimizer::For(*fused.optimizer);
  for (int step = 0; step < 12; ++step) {
    SCOPED_TRACE(step);
    const bool broken = step == 0 || step == 1 || step == 7;
    fused.SetGradients(step, broken ? std::numeric_limits<double>::quiet_NaN() : 1);
    steps->Step(at::full({}, broken ? 1.0F : 0.0F, TestDevice()));
    if (broken) {
      steps->TakeBack();
    } else {
      own.SetGradients(step);
      own.optimizer->step();
    }
    ExpectSame(own, fused);
  }
}

// Its memory has gaps, to which a kernel that knows of no strides would write.
TEST(FusedOptimizer, AParameterWithGapsHasNone) {
  const at::Tensor sparse = torch::zeros({4, 6}).slice(1, 0, 6, 2).requires_grad_();
  optim::SGD optimizer({sparse}, optim::SGDOptions(0.1));
  EXPECT_EQ(FusedOptimizer::For(optimizer), nullptr);
}

TEST(FusedOptimizer, OnlyKindsWithAFusedStepHaveOne) {
  struct OwnSgd : optim::SGD {
    using SGD::SGD;
  };
  const std::vector<at::Tensor> parameters{torch::randn({2}).requires_grad_()};
  optim::RMSprop rmsprop(parameters);
  optim::LBFGS lbfgs(parameters);
  OwnSgd own(parameters, optim::SGDOptions(0.1));
  EXPECT_EQ(FusedOptimizer::For(rmsprop), nullptr);
  EXPECT_EQ(FusedOptimizer::For(lbfgs), nullptr);
  EXPECT_EQ(FusedOptimizer::For(own), nullptr) << "it may step in a way of its own";
}

}  // namespace
}  // namespace espalier
