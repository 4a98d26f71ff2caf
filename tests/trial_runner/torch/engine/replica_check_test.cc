#include "trial_runner/torch/engine/replica_check.h"

#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/types.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "tests/trial_runner/torch/test_device.h"
#include "trial_runner/collectives/gloo/gloo_collectives.h"
#include "trial_runner/torch/engine/libtorch_parts.h"

namespace espalier {
namespace {

// A model and its check, as one replica has them. The same each time.
struct CheckedReplica {
  explicit CheckedReplica(at::ScalarType type) {
    at::manual_seed(5);
    net->push_back(torch::nn::Linear(64, 300));
    net->push_back(torch::nn::Linear(300, 300));
    net->to(type);
    net->register_buffer("constant", at::arange(64));
    optimizer = std::make_unique<torch::optim::Adam>(net->parameters(), 0.001);
    net->forward(at::ones({2, 64}).to(type)).to(at::kFloat).pow(2).mean().backward();
    optimizer->step();  // which makes its state
    auto made = TrainedModel::Make(std::make_unique<LibTorchModel>(*net),
                                   std::make_unique<LibTorchOptimizer>(*optimizer), {});
    EXPECT_TRUE(made.ok()) << made.status();
    models.push_back(*std::move(made));
    position.models = {models.front()->FirstPosition()};
    position.step = 100;
  }

  std::vector<at::Tensor> Compared() {
    std::vector<at::Tensor> tensors = net->parameters();
    for (const at::Tensor& t : models.front()->optimizer().WhatToCompare().tensors) {
      tensors.push_back(t);
    }
    return tensors;
  }

  torch::nn::Sequential net;
  std::unique_ptr<torch::optim::Adam> optimizer;
  std::vector<std::unique_ptr<TrainedModel>> models;
  TrainingPosition position;
  ReplicaCheck check{models, ReplicaCheck::Mode::kBits};
};

// Two replicas' steps, as far as their tails go. `compare` says whether they agreed in each.
class TwoReplicas {
 public:
  explicit TwoReplicas(at::ScalarType type)
      : replicas_{CheckedReplica(type), CheckedReplica(type)} {
    auto alone = MakeGlooCollectives({});
    EXPECT_TRUE(alone.ok());
    collectives_ = *std::move(alone);
    EXPECT_TRUE(collectives_->Form({1, 0, 1, collectives_->Address()}).ok());
  }

  CheckedReplica& first() { return replicas_[0]; }
  CheckedReplica& second() { return replicas_[1]; }

  bool Step() {
    // Of two members' numbers the tail has the sums.
    std::vector<double> sums(GradientBuckets::kFixedTail);
    for (CheckedReplica& replica : replicas_) {
      GradientBuckets& gradients = Begin(replica);
      replica.check.Fill(gradients, replica.position);
      for (int i = 0; i < GradientBuckets::kFixedTail; ++i) {
        sums[static_cast<std::size_t>(i)] += gradients.tail(static_cast<GradientBuckets::Tail>(i));
      }
    }
    bool agreed = true;
    for (CheckedReplica& replica : replicas_) {
      GradientBuckets& gradients = replica.models.front()->gradients();
      for (int i = 0; i < GradientBuckets::kFixedTail; ++i) {
        gradients.SetTail(static_cast<GradientBuckets::Tail>(i), sums[static_cast<std::size_t>(i)]);
      }
      agreed = replica.check.Agree(gradients, 2, replica.position) && agreed;
      ++replica.position.step;
    }
    return agreed;
  }

 private:
  GradientBuckets& Begin(CheckedReplica& replica) {
    GradientBuckets& gradients = replica.models.front()->gradients();
    gradients.Begin({}, *collectives_, 2);
    gradients.End();
    return gradients;
  }

  CheckedReplica replicas_[2];
  std::unique_ptr<Collectives> collectives_;
};

void Flip(const at::Tensor& tensor, std::uint64_t element, std::uint64_t bit) {
  auto* const bytes = static_cast<std::uint8_t*>(tensor.mutable_data_ptr());
  const auto size = static_cast<std::uint64_t>(tensor.element_size());
  bytes[element * size + bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
}

class OneBit : public ::testing::TestWithParam<at::ScalarType> {};

TEST_P(OneBit, OfOneReplicaIsFoundWithinItsRounds) {
  TwoReplicas two(GetParam());
  EXPECT_TRUE(two.Step()) << "all tensors";
  std::uint64_t draw = 7;
  const auto below = [&draw](std::uint64_t most) { return (draw = MixSeed(draw, 3)) % most; };
  for (int i = 0; i < 100; ++i) {
    const std::vector<at::Tensor> tensors = two.second().Compared();
    const at::Tensor& tensor = tensors[below(tensors.size())];
    const std::uint64_t element = below(static_cast<std::uint64_t>(tensor.numel()));
    const std::uint64_t bit =
        i % 4 == 0 ? 0 : below(8 * static_cast<std::uint64_t>(tensor.element_size()));
    for (std::uint64_t steps = below(ReplicaCheck::kRounds); steps > 0; --steps) {
      ASSERT_TRUE(two.Step());
    }
    Flip(tensor, element, bit);
    bool agreed = true;
    int steps = 0;
    for (; agreed && steps < ReplicaCheck::kRounds; ++steps) agreed = two.Step();
    EXPECT_FALSE(agreed) << "draw " << i << ": bit " << bit << " of element " << element;
    const auto own = two.first().check.OfEach(two.first().position);
    const auto others = two.second().check.OfEach(two.second().position);
    ASSERT_EQ(own.size(), others.size());
    std::size_t differ = 0;
    for (std::size_t k = 0; k < own.size(); ++k) differ += own[k] != others[k] ? 1 : 0;
    EXPECT_EQ(differ, 1U);
    Flip(tensor, element, bit);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, OneBit, ::testing::Values(at::kFloat, at::kBFloat16),
                         [](const auto& type) { return std::string(c10::toString(type.param)); });

TEST(ReplicaCheck, NamesTensorsAndNumbers) {
  TwoReplicas two(at::kFloat);
  const auto other = [&two] {
    const auto own = two.first().check.OfEach(two.first().position);
    const auto others = two.second().check.OfEach(two.second().position);
    for (std::size_t k = 0; k < own.size(); ++k) {
      if (own[k] != others[k]) return two.first().check.NameOf(k);
    }
    return std::string("none");
  };
  ASSERT_TRUE(two.Step());
  EXPECT_EQ(other(), "none");
  Flip(two.second().net->parameters()[2], 3, 0);
  EXPECT_EQ(other(), "parameter \"1.weight\"");
  Flip(two.second().net->parameters()[2], 3, 0);
  two.second().position.models.front().loss_scale = 2;
  EXPECT_EQ(other(),
            "numbers of the optimizer, a schedule, the loss scale, the gradient noise or the "
            "position");
  EXPECT_FALSE(two.Step()) << "numbers are compared in each step";
}

// By which rates are scaled.
TEST(ReplicaCheck, MeasuredNoiseIsComparedToTheLastBit) {
  TwoReplicas two(at::kFloat);
  const auto measured = [&two](double trace) {
    two.second().position.models.front().noise.front() =
        NoiseAverages(NoiseAverages::State{.sqr = 1, .trace = trace, .weight = 0.5});
    return two.Step();
  };
  two.first().position.models.front().noise.front() =
      NoiseAverages(NoiseAverages::State{.sqr = 1, .trace = 3, .weight = 0.5});
  EXPECT_TRUE(measured(3));
  EXPECT_FALSE(measured(std::nextafter(3.0, 4.0)));
  EXPECT_TRUE(measured(3));
  two.second().position.progress = 1e-9;
  EXPECT_FALSE(two.Step());
}

TEST(ReplicaCheck, ARateIsComparedFromTheNextRoundOn) {
  TwoReplicas two(at::kFloat);
  ASSERT_TRUE(two.Step());
  two.second().optimizer->param_groups()[0].options().set_lr(0.0011);
  bool agreed = true;
  for (int i = 0; agreed && i < ReplicaCheck::kRounds; ++i) agreed = two.Step();
  EXPECT_FALSE(agreed);
}

TEST(ReplicaCheck, BuffersAreComparedByNameAndRunningStatisticsAreNot) {
  CheckedReplica replica(at::kFloat);
  replica.net->register_buffer("running_mean", at::zeros({3}));
  const auto before = replica.check.OfBuffers();
  ASSERT_EQ(before.size(), 1U);
  EXPECT_EQ(before.begin()->first, "/constant");
  for (int bit = 0; bit < 64; ++bit) {
    const at::Tensor constant = *replica.net->named_buffers().find("constant");
    Flip(constant, 63, static_cast<std::uint64_t>(bit));
    EXPECT_NE(replica.check.OfBuffers(), before);
    Flip(constant, 63, static_cast<std::uint64_t>(bit));
  }
  EXPECT_EQ(replica.check.OfBuffers(), before);
}

TEST(ReplicaCheckDeathTest, AnUnknownModeIsNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv("ESPALIER_CHECK_REPLICAS", "sometimes", 1);
        ReplicaCheck::ModeOfEnvironment();
      },
      ::testing::ExitedWithCode(2),
      "ESPALIER_CHECK_REPLICAS=sometimes: want on \\(the default\\), norms or off");
}

}  // namespace
}  // namespace espalier
