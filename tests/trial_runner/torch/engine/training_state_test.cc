#include "trial_runner/torch/engine/training_state.h"

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/trial_runner/torch/libtorch_state.h"
#include "trial_runner/torch/group/state_stream.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;

// A model of which a buffer may be of any shape.
struct Observed : torch::nn::Module {
  explicit Observed(const std::string& name = "seen")
      : seen(register_buffer(name, at::zeros({1}))), layer(register_module("layer", Layer(2, 1))) {}
  using Layer = torch::nn::Linear;
  at::Tensor seen;
  Layer layer;
};

struct Replica {
  explicit Replica(const std::string& buffer = "seen")
      : net(buffer), optimizer(net.parameters(), 0.1), of(trial) {
    EXPECT_TRUE(of.AddModel("", net, optimizer).ok());
  }
  TrialContext trial;
  Observed net;
  torch::optim::SGD optimizer;
  LibTorchState of;
  TrainingState& state = of.state;
};

absl::Status HandOver(Replica& from, Replica& to) {
  auto offer = from.state.Offer();
  if (!offer.ok()) return offer.status();
  auto expected = to.state.Expect(*offer->description);
  if (!expected.ok()) return expected.status();
  EXPECT_EQ(expected->size(), offer->tensors.size());
  for (std::size_t i = 0; i < expected->size(); ++i) CopyMemory(offer->tensors[i], (*expected)[i]);
  return to.state.Accept();
}

TEST(TrainingState, BuffersAreTakenOverAsTheyAreAtThatMoment) {
  for (const std::int64_t size : {3, 100'000}) {  // within the description, and beside it
    SCOPED_TRACE(size);
    Replica from;
    Replica to;
    from.net.seen.set_data(at::arange(size, at::kDouble));
    from.state.position.step = 5;
    ASSERT_TRUE(HandOver(from, to).ok());
    EXPECT_TRUE(at::equal(to.net.seen, from.net.seen));
    EXPECT_EQ(to.net.seen.scalar_type(), at::kDouble);
    EXPECT_TRUE(at::equal(to.net.layer->weight, from.net.layer->weight));
    EXPECT_EQ(to.state.position.step, 5);
  }
}

TEST(TrainingState, ABufferThatAReplicaCannotHaveIsNamed) {
  Replica from("theirs");
  Replica to("own");
  const absl::Status taken = HandOver(from, to);
  EXPECT_EQ(taken.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(taken.message()), HasSubstr("model: there is no buffer \"theirs\""));
}

TEST(TrainingState, OfAPartNothingElseIsTakenOver) {
  using Extent = TrainingState::Extent;
  for (const Extent extent : {Extent::kProgram, Extent::kBuffers}) {
    Replica from;
    Replica to;
    from.net.seen.set_data(at::arange(100'000));
    from.state.position.step = 5;
    const at::Tensor before = to.net.layer->weight.detach().clone();
    from.state.extent = to.state.extent = extent;
    ASSERT_TRUE(HandOver(from, to).ok());
    EXPECT_EQ(to.state.position.step, extent == Extent::kProgram ? 5 : 0);
    EXPECT_EQ(to.net.seen.numel(), extent == Extent::kProgram ? 1 : 100'000);
    EXPECT_TRUE(at::equal(to.net.layer->weight, before));
  }
}

// Of buffers alone nothing is half overwritten when the group is lost on the way.
TEST(TrainingState, LargeBuffersAloneArriveBesideTheirPlace) {
  Replica from;
  Replica to;
  from.net.seen.set_data(at::ones({100'000}));
  to.net.seen.set_data(at::zeros({100'000}));
  from.state.extent = to.state.extent = TrainingState::Extent::kBuffers;
  auto offer = from.state.Offer();
  ASSERT_TRUE(offer.ok());
  auto expected = to.state.Expect(*offer->description);
  ASSERT_TRUE(expected.ok());
  CopyMemory(offer->tensors.front(), expected->front());
  EXPECT_EQ(to.net.seen.sum().item<double>(), 0);
  ASSERT_TRUE(to.state.Accept().ok());
  EXPECT_EQ(to.net.seen.sum().item<double>(), 100'000);
}

// Who has left out steps that others took is what these go on from.
TEST(TrainingState, StepsThatWereLeftOutAreFurther) {
  Replica one;
  Replica other;
  one.state.position.step = other.state.position.step = 7;
  EXPECT_EQ(one.state.Order(), other.state.Order());
  ++one.state.position.left_out;
  EXPECT_GT(one.state.Order(), other.state.Order());
}

}  // namespace
}  // namespace espalier
