// What an optimizer has learnt, on its way to a replica that joins: in the order of the parameters.

#include "trial_runner/torch/checkpoints/optimizer_state.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <torch/optim/adam.h>
#include <torch/types.h>

#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "trial_runner/torch/gradients/fused_optimizer.h"
#include "trial_runner/torch/gradients/preconditioner.h"
#include "trial_runner/torch/group/state_stream.h"

namespace espalier {
namespace {

// A convolution for channels_last, after some steps of Adam that stands for the group's.
struct OrderedConvolution {
  explicit OrderedConvolution(int steps) {
    at::manual_seed(4);
    weight = at::ones({3, 4, 2, 2}).contiguous(at::MemoryFormat::ChannelsLast).requires_grad_();
    adam = std::make_unique<torch::optim::Adam>(std::vector<at::Tensor>{weight},
                                                torch::optim::AdamOptions(0.1));
    for (int i = 0; i < steps; ++i) {
      SetGradient(i);
      adam->step();
    }
  }
  void SetGradient(int step) {
    weight.mutable_grad() = at::arange(48, at::kFloat)
                                .reshape({3, 4, 2, 2})
                                .mul(step % 2 == 0 ? 0.1 : -0.2)
                                .contiguous(at::MemoryFormat::ChannelsLast);
  }
  const at::Tensor& moment() {
    return static_cast<torch::optim::AdamParamState&>(
               *adam->state().at(weight.unsafeGetTensorImpl()))
        .exp_avg_sq();
  }
  std::vector<Preconditioner> preconditioners() { return Preconditioners(*adam, {weight}, {0}); }

  at::Tensor weight;
  std::unique_ptr<torch::optim::Adam> adam;
};

TEST(OptimizerState, ArrivesInTheOrderOfItsParameters) {
  OrderedConvolution trained(6);
  OrderedConvolution joiner(0);
  StateWriter to;
  WriteOptimizer(*trained.adam, to);
  const StateOffer offer = std::move(to).Take();
  StateReader from(*offer.description);
  ASSERT_TRUE(ReadOptimizer(*joiner.adam, from).ok());
  EXPECT_EQ(joiner.moment().strides(), joiner.weight.strides());
  ASSERT_EQ(joiner.preconditioners().size(), 1U);
  EXPECT_TRUE(at::equal(joiner.moment(), trained.moment()));
  {
    const at::NoGradGuard no_grad;
    joiner.weight.copy_(trained.weight);
  }
  for (OrderedConvolution* each : {&trained, &joiner}) {
    each->SetGradient(6);
    const auto fused = FusedOptimizer::For(*each->adam);
    fused->Step({});
  }
  EXPECT_TRUE(at::equal(joiner.weight, trained.weight)) << "what comes next is the same";
}

TEST(Preconditioners, AreInTheOrderOfTheirParametersWhateverTheMomentsAreIn) {
  OrderedConvolution net(6);
  const at::Tensor expected = net.preconditioners().at(0).second_moment;
  auto& state = static_cast<torch::optim::AdamParamState&>(
      *net.adam->state().at(net.weight.unsafeGetTensorImpl()));
  state.exp_avg_sq(net.moment().contiguous());
  const auto all = net.preconditioners();
  ASSERT_EQ(all.size(), 1U) << "all replicas scale, or none";
  EXPECT_EQ(all[0].second_moment.strides(), net.weight.strides());
  EXPECT_TRUE(at::equal(all[0].second_moment, expected));
}

}  // namespace
}  // namespace espalier
