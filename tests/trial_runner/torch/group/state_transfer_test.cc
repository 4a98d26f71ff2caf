// Replicas are threads of one process here: each has its own model, optimizer and group.

#include "trial_runner/torch/group/state_transfer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/any.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <functional>
#include <future>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/trial_runner/collectives/forwarding_collectives.h"
#include "tests/trial_runner/torch/libtorch_state.h"
#include "tests/trial_runner/torch/test_device.h"
#include "trial_runner/torch/engine/training_state.h"
#include "trial_runner/torch/process/trial_context.h"

namespace espalier {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using MakeOptimizer =
    std::function<std::unique_ptr<torch::optim::Optimizer>(std::vector<at::Tensor>)>;

std::unique_ptr<torch::optim::Optimizer> MakeSgd(std::vector<at::Tensor> parameters) {
  return std::make_unique<torch::optim::SGD>(std::move(parameters),
                                             torch::optim::SGDOptions(0.1).momentum(0.9));
}

// Not in the table of kinds: it might keep more than SGD does.
class TransferredSgd final : public torch::optim::SGD {
 public:
  using SGD::SGD;
};

// Forwards to others, writes down who talks to whom, and can give up on the way.
class Watched final : public ForwardingCollectives {
 public:
  Watched() : ForwardingCollectives(TestCollectives()) {}

  absl::Status Form(const GroupPlan& plan) override {
    generation_ = plan.generation;
    sent_to.clear();
    received_from.clear();
    return ForwardingCollectives::Form(plan);
  }
  void StartSend(const CollectiveBuffer& b, int to) override {
    sent_to.insert(to);
    ForwardingCollectives::StartSend(b, to);
  }
  void StartReceive(const CollectiveBuffer& b, int from) override {
    received_from.insert(from);
    if (loses_large_tensors && b.count >= static_cast<std::int64_t>(kLargeBytes)) {
      Abandon(generation_ + 1, /*grace_s=*/0);
    }
    ForwardingCollectives::StartReceive(b, from);
  }
  absl::StatusOr<std::vector<std::vector<std::int64_t>>> AllGather(
      const std::vector<std::int64_t>& values) override {
    ++gatherings;
    return ForwardingCollectives::AllGather(values);
  }

  std::set<int> sent_to;
  std::set<int> received_from;
  int gatherings = 0;
  bool loses_large_tensors = false;

 private:
  std::int64_t generation_ = 0;
};

constexpr std::int64_t kFeatures = 40;

// A model with small and large tensors, and a buffer that counts.
struct TransferringReplica {
  explicit TransferringReplica(double start, const MakeOptimizer& make = MakeSgd,
                               std::int64_t width = 600)
      : model(torch::nn::Linear(kFeatures, width), torch::nn::BatchNorm1d(width),
              torch::nn::Linear(width, 1)) {
    const at::NoGradGuard no_grad;
    model->to(TestDevice());
    for (at::Tensor& p : model->parameters()) p.fill_(start);
    optimizer = make(model->parameters());
    EXPECT_TRUE(parts.AddModel("", *model, *optimizer).ok());
  }

  void Train(int steps) {
    for (int i = 0; i < steps; ++i) {
      optimizer->zero_grad();
      const at::Tensor x = at::ones({8, kFeatures}, TestDevice()) *
                           at::arange(8, TestDevice()).unsqueeze(1) *
                           (0.1 * static_cast<double>(i + 1));
      const auto loss = [&] {
        optimizer->zero_grad();
        at::Tensor sum = model->forward(x).sum();
        sum.backward();
        return sum;
      };
      optimizer->step(loss);
      ++state.position.step;
    }
  }

  TrialContext trial;
  torch::nn::Sequential model;
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  LibTorchState parts{trial};
  TrainingState& state = parts.state;
  bool offers = false;  // see Readiness
  Watched collectives;
  GroupProgress progress;
};

// Large tensors, some of which do not lie in the order of their elements.
TEST(WarmUp, LeavesTheStateAsItIs) {
  TransferringReplica replica(0.5);
  const at::Tensor large = replica.model->parameters().at(0);
  ASSERT_GE(large.nbytes(), kLargeBytes);
  large.set_data(large.t().contiguous().t());
  ASSERT_FALSE(large.is_contiguous());
  replica.Train(2);
  std::vector<at::Tensor> before;
  for (const at::Tensor& p : replica.model->parameters()) {
    before.push_back(p.detach().clone());
  }
  ASSERT_TRUE(replica.state.WarmUp().ok());
  const std::vector<at::Tensor> after = replica.model->parameters();
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_TRUE(at::equal(after[i].detach(), before[i])) << i;
  }
  EXPECT_EQ(replica.state.position.step, 2);
}

using Replicas = std::vector<std::unique_ptr<TransferringReplica>>;

std::vector<absl::Status> Equalise(const Replicas& replicas, bool running = false) {
  static std::int64_t generation = 0;
  ++generation;
  const int size = static_cast<int>(replicas.size());
  std::vector<std::future<absl::Status>> each;
  for (int rank = 0; rank < size; ++rank) {
    each.push_back(std::async(std::launch::async, [&, rank] {
      TransferringReplica& replica = *replicas[static_cast<std::size_t>(rank)];
      absl::Status done = replica.collectives.Form(
          {generation, rank, size, replicas.front()->collectives.Address()});
      if (done.ok()) {
        replica.progress.Begin(GroupPhase::kHandingOver, generation);
        done = EqualiseState(replica.collectives, replica.state, rank, size,
                             {.running = running, .offers = replica.offers}, replica.progress);
      }
      if (!done.ok()) {  // the service tells the others
        for (const auto& other : replicas) other->collectives.Abandon(generation + 1, 0);
      }
      return done;
    }));
  }
  std::vector<absl::Status> statuses;
  for (auto& e : each) statuses.push_back(e.get());
  return statuses;
}

void ExpectAllOk(const std::vector<absl::Status>& statuses) {
  for (const absl::Status& status : statuses) EXPECT_TRUE(status.ok()) << status;
}

void ExpectEqualStates(const TransferringReplica& a, const TransferringReplica& b) {
  const auto of_b = b.model->named_parameters();
  for (const auto& p : a.model->named_parameters()) {
    EXPECT_TRUE(at::equal(p.value(), of_b[p.key()])) << p.key();
  }
  const auto buffers = b.model->named_buffers();
  for (const auto& buffer : a.model->named_buffers()) {
    EXPECT_TRUE(at::equal(buffer.value(), buffers[buffer.key()])) << buffer.key();
  }
  EXPECT_EQ(a.state.position.step, b.state.position.step);
}

template <typename... Each>
Replicas ReplicasOf(Each... each) {
  Replicas replicas;
  (replicas.push_back(std::move(each)), ...);
  return replicas;
}

struct NamedOptimizer {
  std::string name;
  MakeOptimizer make;

  friend void PrintTo(const NamedOptimizer& kind, std::ostream* to) { *to << kind.name; }
};

class EachOptimizer : public ::testing::TestWithParam<NamedOptimizer> {};

// The test of a state is what is done from there: the next steps have to be the same.
TEST_P(EachOptimizer, StateMovesSoThatTheNextStepsAreTheSame) {
  const MakeOptimizer& make = GetParam().make;
  const Replicas replicas = ReplicasOf(std::make_unique<TransferringReplica>(0.5, make),
                                       std::make_unique<TransferringReplica>(0.01, make));
  TransferringReplica& joiner = *replicas[0];
  TransferringReplica& trained = *replicas[1];
  trained.Train(3);
  trained.optimizer->param_groups().front().options().set_lr(0.025);
  ExpectAllOk(Equalise(replicas));
  ExpectEqualStates(trained, joiner);
  EXPECT_EQ(joiner.optimizer->param_groups().front().options().get_lr(), 0.025);
  for (const auto& replica : replicas) replica->Train(2);
  ExpectEqualStates(trained, joiner);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, EachOptimizer,
    ::testing::Values(
        NamedOptimizer{"Sgd", MakeSgd},
        NamedOptimizer{"Adam",
                       [](std::vector<at::Tensor> p) {
                         return std::make_unique<torch::optim::Adam>(
                             std::move(p), torch::optim::AdamOptions(0.01).amsgrad(true));
                       }},
        NamedOptimizer{"AdamW",
                       [](std::vector<at::Tensor> p) {
                         return std::make_unique<torch::optim::AdamW>(
                             std::move(p), torch::optim::AdamWOptions(0.01));
                       }},
        NamedOptimizer{"RmsProp",
                       [](std::vector<at::Tensor> p) {
                         return std::make_unique<torch::optim::RMSprop>(
                             std::move(p),
                             torch::optim::RMSpropOptions(0.01).momentum(0.5).centered(true));
                       }},
        NamedOptimizer{"Adagrad",
                       [](std::vector<at::Tensor> p) {
                         return std::make_unique<torch::optim::Adagrad>(
                             std::move(p), torch::optim::AdagradOptions(0.01));
                       }},
        NamedOptimizer{"AnotherByItsArchive",
                       [](std::vector<at::Tensor> p) {
                         return std::make_unique<TransferredSgd>(
                             std::move(p), torch::optim::SGDOptions(0.1).momentum(0.9));
                       }}),
    [](const auto& kind) { return kind.param.name; });

TEST(StateTransfer, EqualMembersKeepTheirBuffersAndSendNothing) {
  const Replicas replicas = ReplicasOf(std::make_unique<TransferringReplica>(0.5),
                                       std::make_unique<TransferringReplica>(0.5));
  for (const auto& replica : replicas) replica->Train(2);
  for (at::Tensor& b : replicas[1]->model->buffers()) b.fill_(7);
  ExpectAllOk(Equalise(replicas));
  for (const auto& replica : replicas) {
    EXPECT_THAT(replica->collectives.sent_to, IsEmpty());
    EXPECT_THAT(replica->collectives.received_from, IsEmpty());
  }
  for (const at::Tensor& b : replicas[1]->model->buffers()) EXPECT_TRUE(b.eq(7).all().item<bool>());
}

TEST(StateTransfer, EachJoinerTakesFromAnotherSource) {
  const Replicas replicas = ReplicasOf(
      std::make_unique<TransferringReplica>(0.1), std::make_unique<TransferringReplica>(0.5),
      std::make_unique<TransferringReplica>(0.2), std::make_unique<TransferringReplica>(0.5));
  replicas[1]->Train(2);
  replicas[3]->Train(2);
  ExpectAllOk(Equalise(replicas));
  EXPECT_THAT(replicas[1]->collectives.sent_to, ElementsAre(0));
  EXPECT_THAT(replicas[3]->collectives.sent_to, ElementsAre(2));
  ExpectEqualStates(*replicas[1], *replicas[0]);
  ExpectEqualStates(*replicas[1], *replicas[2]);
}

TEST(StateTransfer, OffersThatAreMadeAheadTakeOneGatheringLess) {
  for (const bool ahead : {false, true}) {
    const Replicas replicas = ReplicasOf(std::make_unique<TransferringReplica>(0.5),
                                         std::make_unique<TransferringReplica>(0.1),
                                         std::make_unique<TransferringReplica>(0.5));
    for (const std::size_t trained : {0U, 2U}) {
      replicas[trained]->Train(2);
      replicas[trained]->offers = ahead;
    }
    replicas[1]->offers = ahead;  // has nothing that it could offer
    ExpectAllOk(Equalise(replicas));
    for (const auto& replica : replicas) {
      EXPECT_EQ(replica->collectives.gatherings, ahead ? 1 : 2);
      ExpectEqualStates(*replicas[0], *replica);
    }
  }
}

// Two who could hand over theirs, of whom the one that is asked has not made its offer.
TEST(StateTransfer, AnOfferIsMadeByWhoeverIsAsked) {
  const Replicas replicas = ReplicasOf(std::make_unique<TransferringReplica>(0.5),
                                       std::make_unique<TransferringReplica>(0.5),
                                       std::make_unique<TransferringReplica>(0.1));
  for (const std::size_t trained : {0U, 1U}) replicas[trained]->Train(2);
  replicas[1]->offers = true;
  ExpectAllOk(Equalise(replicas));
  EXPECT_THAT(replicas[0]->collectives.sent_to, ElementsAre(2));
  ExpectEqualStates(*replicas[0], *replicas[2]);
}

// A round is what anybody waits for at a time, also who has no part in it.
TEST(StateTransfer, ALargeStateTravelsInRoundsToWhichAllCome) {
  constexpr std::int64_t kWide = 900'000;  // 144 MB of weights
  const Replicas replicas = ReplicasOf(std::make_unique<TransferringReplica>(0.1, MakeSgd, kWide),
                                       std::make_unique<TransferringReplica>(0.5, MakeSgd, kWide),
                                       std::make_unique<TransferringReplica>(0.5, MakeSgd, kWide));
  for (const std::size_t trained : {1U, 2U}) replicas[trained]->state.position.step = 7;
  ExpectAllOk(Equalise(replicas));
  ExpectEqualStates(*replicas[1], *replicas[0]);
  const ReplicaForming taken = replicas[0]->progress.Read();
  EXPECT_GT(taken.bytes_total, 144'000'000);
  EXPECT_GE(taken.bytes, taken.bytes_total);
  EXPECT_EQ(replicas[1]->progress.Read().bytes_total, taken.bytes_total);
  EXPECT_EQ(replicas[2]->progress.Read().bytes, 0);
  EXPECT_GE(replicas[0]->collectives.gatherings, 1 + 3);
  EXPECT_EQ(replicas[2]->collectives.gatherings, replicas[0]->collectives.gatherings);
}

TEST(StateTransfer, FreshMembersAllTakeTheFirstOnesModel) {
  const Replicas replicas = ReplicasOf(std::make_unique<TransferringReplica>(0.1),
                                       std::make_unique<TransferringReplica>(0.2),
                                       std::make_unique<TransferringReplica>(0.3));
  ExpectAllOk(Equalise(replicas, /*running=*/true));
  EXPECT_THAT(replicas[0]->collectives.sent_to, ElementsAre(1, 2));
  ExpectEqualStates(*replicas[0], *replicas[1]);
  ExpectEqualStates(*replicas[0], *replicas[2]);
}

TEST(StateTransfer, MembersThatBeginTogetherHaveTheSameModel) {
  const auto made = [](double last) {
    return ReplicasOf(std::make_unique<TransferringReplica>(0.1),
                      std::make_unique<TransferringReplica>(0.1),
                      std::make_unique<TransferringReplica>(last));
  };
  ExpectAllOk(Equalise(made(0.1)));
  // Who finds it first abandons the group here.
  int named = 0;
  for (const absl::Status& status : Equalise(made(0.3))) {
    if (absl::IsAborted(status)) continue;
    ++named;
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("replica 2 begins with other values than the others: parameter "
                          "\"0.weight\", parameter \"0.bias\", parameter \"1.weight\" and 3 more"));
  }
  EXPECT_GT(named, 0);
}

TEST(StateTransfer, AnotherModelIsRefusedByTheFirstTensorThatDiffers) {
  const Replicas replicas =
      ReplicasOf(std::make_unique<TransferringReplica>(0.1),
                 std::make_unique<TransferringReplica>(0.2, MakeSgd, /*width=*/500));
  replicas[0]->Train(1);
  const auto statuses = Equalise(replicas);
  const std::string message(statuses[1].message());
  EXPECT_EQ(statuses[1].code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(message, HasSubstr("model: 0.weight is Float [500, 40] in this replica"));
  EXPECT_THAT(message, HasSubstr("Float [600, 40] in the group"));
}

class BrokenTransfer : public ::testing::Test {
 protected:
  // A joiner that has lost touch with its source in mid-transfer.
  void SetUp() override {
    replicas_ = ReplicasOf(std::make_unique<TransferringReplica>(0.1),
                           std::make_unique<TransferringReplica>(0.2));
    trained().Train(2);
    joiner().collectives.loses_large_tensors = true;
    memory_ = joiner().model->parameters()[0].data_ptr();
    EXPECT_EQ(Equalise(replicas_)[0].code(), absl::StatusCode::kAborted);
    joiner().collectives.loses_large_tensors = false;
  }

  TransferringReplica& joiner() { return *replicas_[0]; }
  TransferringReplica& trained() { return *replicas_[1]; }
  Replicas WithJoiner(std::unique_ptr<TransferringReplica> other) {
    return ReplicasOf(std::move(replicas_[0]), std::move(other));
  }

  Replicas replicas_;
  const void* memory_ = nullptr;
};

TEST_F(BrokenTransfer, LeavesAStateBelowAFreshOneInOtherMemory) {
  EXPECT_EQ(joiner().state.Order().front(), SharedState::kSpoiled);
  EXPECT_LT(joiner().state.Order(), TransferringReplica(0.3).state.Order());
  EXPECT_NE(joiner().model->parameters()[0].data_ptr(), memory_);
}

TEST_F(BrokenTransfer, IsMadeGoodByTheNext) {
  ExpectAllOk(Equalise(replicas_));
  ExpectEqualStates(trained(), joiner());
  trained().Train(1);
  joiner().Train(1);
  ExpectEqualStates(trained(), joiner());
}

TEST_F(BrokenTransfer, JoinerTakesAFreshModelIfNobodyHasAnother) {
  const Replicas replicas = WithJoiner(std::make_unique<TransferringReplica>(0.3));
  ExpectAllOk(Equalise(replicas));
  ExpectEqualStates(*replicas[1], *replicas[0]);
}

TEST_F(BrokenTransfer, ReplicaAloneWithASpoiledStateEnds) {
  replicas_.pop_back();
  const auto statuses = Equalise(replicas_);
  EXPECT_EQ(statuses[0].code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(statuses[0].message()), HasSubstr("training state was lost"));
}

TEST_F(BrokenTransfer, ProgramInItsLoopIsNotSentBack) {
  joiner().state.position.step = 100;  // it was there before
  const Replicas replicas = WithJoiner(std::make_unique<TransferringReplica>(0.3));
  const auto statuses = Equalise(replicas, /*running=*/true);
  EXPECT_EQ(statuses[0].code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace espalier
