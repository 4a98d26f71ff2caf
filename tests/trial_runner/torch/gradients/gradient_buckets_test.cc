#include "trial_runner/torch/gradients/gradient_buckets.h"

#include <sys/resource.h>
#include <torch/csrc/autograd/autograd.h>
#include <unistd.h>

#include <future>
#include <mutex>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "tests/trial_runner/collectives/forwarding_collectives.h"
#include "tests/trial_runner/torch/gradients/buckets_under_test.h"

namespace espalier {
namespace {

INSTANTIATE_TEST_SUITE_P(EachWay, GradientBucketsTest, ::testing::ValuesIn(Ways()), NameOfWay);

TEST_P(GradientBucketsTest, SumsMicrobatchesByWeightAndMeasuresEachOfThem) {
  const Data data;
  const auto net = MakeNet();
  const auto plain = MakeNet();
  const auto collectives = Alone();
  GradientBuckets buckets = MakeBuckets(ParametersOf(*net), 2);
  for (int step = 0; step < 2; ++step) {  // nothing of the first step is left in the second
    double local_a = 0;
    double local_b = 0;
    for (const auto& [begin, size] : {std::pair{0, 5}, std::pair{5, 4}, std::pair{9, 3}}) {
      buckets.Begin({.weight = size / 12.0, .first = begin == 0, .last = begin == 9}, *collectives,
                    1);
      data.Loss(*net, begin, size).backward();
      buckets.End();
      plain->zero_grad();
      data.Loss(*plain, begin, size).backward();
      local_a += Sqr(*plain->a);
      local_b += Sqr(*plain->b);
    }
    buckets.SetTail(GradientBuckets::kPending, 7);
    ASSERT_TRUE(buckets.Reduce().ok());
    plain->zero_grad();
    data.Loss(*plain, 0, 12).backward();
    ExpectSameGradients(*net, *plain);
    EXPECT_EQ(buckets.tail(GradientBuckets::kPending), 7);
    EXPECT_NEAR(buckets.LocalSqr()[0], local_a, 1e-5 * local_a);
    EXPECT_NEAR(buckets.LocalSqr()[1], local_b, 1e-5 * local_b);
    const auto norms = buckets.MeasureStep(true);
    EXPECT_NEAR(norms.sqr[0], Sqr(*plain->a), 1e-5 * norms.sqr[0]);
    EXPECT_NEAR(norms.sqr[1], Sqr(*plain->b), 1e-5 * norms.sqr[1]);
    EXPECT_TRUE(norms.product.empty());
    EXPECT_NEAR(buckets.Norm(), std::sqrt(norms.sqr[0] + norms.sqr[1]), 1e-5);
  }
}

std::int64_t PageFaults() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return used.ru_minflt;
}

TEST(GradientBuckets, MemoryThatWasPreparedIsNotFirstTouchedInTheNextPass) {
  // 48 MB: glibc maps such a block by itself, so none that was freed before takes its place.
  constexpr std::int64_t kElements = 12 << 20;
  const at::Tensor parameter = at::ones({kElements}).set_requires_grad(true);
  const auto collectives = Alone();
  GradientBuckets buckets({{parameter, 0}}, 1, kSmallBuckets);
  for (int round = 0; round < 2; ++round) {  // the second as in a spare, which had let it go
    buckets.Prepare();
    const std::int64_t before = PageFaults();
    buckets.Begin({}, *collectives, 1);
    const std::int64_t pages = kElements * 4 / sysconf(_SC_PAGESIZE);
    EXPECT_LT(PageFaults() - before, pages / 2);
    (parameter * 2).sum().backward();
    buckets.End();
    ASSERT_TRUE(buckets.Reduce().ok());
    EXPECT_EQ(parameter.grad().min().item<float>(), 2);
    EXPECT_EQ(parameter.grad().max().item<float>(), 2);
    buckets.Renew();
  }
}

TEST_P(GradientBucketsTest, ReducesOverMembersWhoseSharesDiffer) {
  const Data data;
  std::vector<std::unique_ptr<Collectives>> members;
  for (int rank = 0; rank < 3; ++rank) members.push_back(*MakeGlooCollectives({}));
  const auto plain = MakeNet();
  data.Loss(*plain, 0, 12).backward();
  std::vector<std::unique_ptr<Net>> nets;
  for (int rank = 0; rank < 3; ++rank) nets.push_back(MakeNet());
  std::vector<std::future<void>> running;
  for (int rank = 0; rank < 3; ++rank) {
    running.push_back(std::async(std::launch::async, [&, rank] {
      const auto r = static_cast<std::size_t>(rank);
      Collectives& collectives = *members[r];
      ASSERT_TRUE(collectives.Form({1, rank, 3, members[0]->Address()}).ok());
      GradientBuckets buckets = MakeBuckets(ParametersOf(*nets[r]), 2);
      for (int step = 0; step < 3; ++step) {
        // The third member has no samples.
        const std::int64_t size = rank == 0 ? 8 : rank == 1 ? 4 : 0;
        buckets.Begin({.weight = static_cast<double>(size) / 12}, collectives, 3);
        if (size > 0) data.Loss(*nets[r], rank == 0 ? 0 : 8, size).backward();
        buckets.End();
        buckets.SetTail(GradientBuckets::kMicrobatches, size > 0 ? 1 : 0);
        buckets.SetComputeTime(rank, rank + 1);
        ASSERT_TRUE(buckets.Reduce().ok());
        EXPECT_EQ(buckets.tail(GradientBuckets::kMicrobatches), 2);
        for (int other = 0; other < 3; ++other) {
          EXPECT_EQ(buckets.compute_time_s(other), other + 1);
        }
        ExpectSameGradients(*nets[r], *plain);
      }
    }));
  }
  for (auto& r : running) r.get();
}

TEST_P(GradientBucketsTest, AKeptStepIsComparedWithTheOneBefore) {
  const Data data;
  const auto net = MakeNet();
  const auto collectives = Alone();
  GradientBuckets buckets = MakeBuckets(ParametersOf(*net), 2);
  const auto step = [&](std::int64_t begin) {
    buckets.Begin({.keep = true}, *collectives, 1);
    data.Loss(*net, begin, 6).backward();
    buckets.End();
  };
  step(0);
  EXPECT_TRUE(buckets.MeasureStep(true).product.empty());
  const at::Tensor before = net->b->weight.grad().clone();
  const at::Tensor before_bias = net->b->bias.grad().clone();
  buckets.KeepAsPrevious();
  buckets.Scale(0.5);  // as clipping would: what was kept stays as it was
  step(6);
  const auto norms = buckets.MeasureStep(true);
  const double product = (before * net->b->weight.grad()).sum().item<double>() +
                         (before_bias * net->b->bias.grad()).sum().item<double>();
  EXPECT_NEAR(norms.product[1], product, 1e-6);
  EXPECT_NEAR(norms.previous_sqr[1],
              before.pow(2).sum().item<double>() + before_bias.pow(2).sum().item<double>(), 1e-6);
  EXPECT_FALSE(net->unused->weight.grad().defined());
}

TEST_P(GradientBucketsTest, AnotherModelsBackwardLeavesNothingBehind) {
  const Data data;
  const auto net = MakeNet();
  const auto plain = MakeNet();
  const auto collectives = Alone();
  GradientBuckets buckets = MakeBuckets(ParametersOf(*net), 2);
  data.Loss(*net, 0, 3).backward();  // outside of a pass
  buckets.Begin({.weight = 1}, *collectives, 1);
  data.Loss(*net, 3, 6).backward();
  buckets.End();
  data.Loss(*net, 9, 3).backward();
  ASSERT_TRUE(buckets.Reduce().ok());
  data.Loss(*plain, 3, 6).backward();
  ExpectSameGradients(*net, *plain);
}

// As where a user's hook throws in the middle of backward.
TEST_P(GradientBucketsTest, APassThatThrewLeavesNothingToTheNext) {
  const Data data;
  const auto net = MakeNet();
  const auto plain = MakeNet();
  const auto collectives = Alone();
  GradientBuckets buckets = MakeBuckets(ParametersOf(*net), 2, /*bytes=*/1 << 20);
  buckets.Begin({.weight = 1}, *collectives, 1);
  net->unused->forward(at::ones({3}, TestDevice())).sum().backward();
  buckets.Begin({.weight = 1}, *collectives, 1);
  data.Loss(*net, 0, 6).backward();
  buckets.End();
  ASSERT_TRUE(buckets.Reduce().ok());
  data.Loss(*plain, 0, 6).backward();
  ExpectSameGradients(*net, *plain);
  EXPECT_NEAR(buckets.LocalSqr()[1], Sqr(*plain->b), 1e-5 * Sqr(*plain->b));
}

// As where a layer is frozen for some steps, in which the group changes.
TEST_P(GradientBucketsTest, AParameterMayRequireNoGradientForAWhile) {
  const Data data;
  const auto net = MakeNet();
  const auto plain = MakeNet();
  const auto collectives = Alone();
  GradientBuckets buckets = MakeBuckets(ParametersOf(*net), 2);
  for (const bool trained : {false, true}) {
    for (Net* of : {net.get(), plain.get()}) of->b->weight.requires_grad_(trained);
    if (!trained) buckets.Attach();
    buckets.Begin({.weight = 1}, *collectives, 1);
    data.Loss(*net, 0, 6).backward();
    buckets.End();
    ASSERT_TRUE(buckets.Reduce().ok());
    for (auto& p : plain->parameters()) p.mutable_grad().reset();
    data.Loss(*plain, 0, 6).backward();
    EXPECT_EQ(plain->b->weight.grad().defined(), trained);
    ExpectSameGradients(*net, *plain);
  }
}

// Steps are open when a program comes to unfreeze a layer: no node of it was there to hook.
TEST_P(GradientBucketsTest, AParameterMayRequireAGradientAgainInAnOpenPass) {
  const Data data;
  const auto net = MakeNet();
  const auto plain = MakeNet();
  const auto collectives = Alone();
  GradientBuckets buckets = MakeBuckets(ParametersOf(*net), 2);
  for (const bool keep : {false, true}) {
    net->b->weight.requires_grad_(false);
    buckets.Attach();
    buckets.Begin({.weight = 1, .keep = keep}, *collectives, 1);
    net->b->weight.requires_grad_(true);
    data.Loss(*net, 0, 6).backward();
    buckets.End();
    if (!keep) {
      ASSERT_TRUE(buckets.Reduce().ok());
    }
    for (auto& p : plain->parameters()) p.mutable_grad().reset();
    data.Loss(*plain, 0, 6).backward();
    ExpectSameGradients(*net, *plain);
    EXPECT_NEAR(buckets.MeasureStep(false).sqr[1], Sqr(*plain->b), 1e-5 * Sqr(*plain->b));
  }
}

TEST_P(GradientBucketsTest, WhatTheProgramSetsItselfIsSummedLikeWhatBackwardBrings) {
  const Data data;
  const auto net = MakeNet();
  const auto plain = MakeNet();
  const auto collectives = Alone();
  GradientBuckets buckets = MakeBuckets(ParametersOf(*net), 2);
  std::vector<at::Tensor> set = net->a->parameters();
  for (const auto& p : net->b->parameters()) set.push_back(p);
  const auto run = [&](const GradientBuckets::Pass& pass, std::int64_t begin, std::int64_t size) {
    buckets.Begin(pass, *collectives, 1);
    const auto gradients = torch::autograd::grad({data.Loss(*net, begin, size)}, set);
    for (std::size_t i = 0; i < set.size(); ++i) set[i].mutable_grad() = gradients[i];
    buckets.End();
  };
  data.Loss(*plain, 0, 12).backward();
  for (const bool keep : {false, true, false}) {
    if (keep) {
      run({.keep = true}, 0, 12);
    } else {
      run({.weight = 0.5, .last = false}, 0, 6);
      run({.weight = 0.5, .first = false}, 6, 6);
      ASSERT_TRUE(buckets.Reduce().ok());
    }
    ExpectSameGradients(*net, *plain);
    EXPECT_NEAR(buckets.MeasureStep(false).sqr[1], Sqr(*plain->b), 1e-5 * Sqr(*plain->b));
    EXPECT_EQ(buckets.SetSinceEnd(), nullptr);
    net->unused->bias.mutable_grad() = at::ones_like(net->unused->bias);
    EXPECT_EQ(buckets.SetSinceEnd(), &buckets.parameters().back());
  }
}

// Counts what is begun.
class Counting final : public ForwardingCollectives {
 public:
  Counting() : ForwardingCollectives(Alone()) {}

  void StartAllReduceSum(const CollectiveBuffer& b) override {
    counts.push_back(b.count);
    ForwardingCollectives::StartAllReduceSum(b);
  }
  std::vector<std::int64_t> counts;
};

TEST_P(GradientBucketsTest, AreCutAnewBetweenStepsToTheSameSums) {
  const Data data;
  const auto net = MakeNet();
  const auto plain = MakeNet();
  Counting collectives;
  GradientBuckets buckets = MakeBuckets(ParametersOf(*net), 2, /*bytes=*/4);
  data.Loss(*plain, 0, 6).backward();
  // In the order of backward: 3 and 9 elements of the unused layer, 4 and 36, 9 and 54.
  for (const auto& [first, each, pieces] :
       {std::tuple{4, 4, 6U}, std::tuple{50, 1000, 2U}, std::tuple{1000, 1000, 1U}}) {
    buckets.SetBucketBytes(first, each);
    collectives.counts.clear();
    buckets.Begin({.weight = 1}, collectives, 1);
    data.Loss(*net, 0, 6).backward();
    buckets.End();
    ASSERT_TRUE(buckets.Reduce().ok());
    EXPECT_EQ(collectives.counts.size(), pieces);
    if (pieces == 2) {
      EXPECT_EQ(collectives.counts[0], 12) << "the first is small";
    }
    ExpectSameGradients(*net, *plain);
    const auto norms = buckets.MeasureStep(false);
    EXPECT_NEAR(norms.sqr[0], Sqr(*plain->a), 1e-5 * norms.sqr[0]);
  }
}

// A step of several backward passes, as programs take that run them themselves.
TEST_P(GradientBucketsTest, AddsWhatAFurtherBackwardBrings) {
  const Data data;
  const auto net = MakeNet();
  const auto plain = MakeNet();
  const auto collectives = Alone();
  GradientBuckets buckets = MakeBuckets(ParametersOf(*net), 2);
  buckets.SetPreconditioners(SomePreconditioners(*net, 4));
  for (const bool keep : {true, false, true}) {
    SCOPED_TRACE(keep);
    net->zero_grad();
    plain->zero_grad();
    buckets.Begin({.keep = keep}, *collectives, 1);
    data.Loss(*net, 0, 6).backward();
    buckets.End();
    buckets.Reopen(/*last=*/true);
    data.Loss(*net, 6, 6).backward();
    buckets.End();
    if (!keep) {
      ASSERT_TRUE(buckets.Reduce().ok());
    }
    data.Loss(*plain, 0, 6).backward();
    data.Loss(*plain, 6, 6).backward();
    ExpectSameGradients(*net, *plain);
    EXPECT_TRUE(buckets.in_parts());
    const auto norms = buckets.MeasureStep(true);
    EXPECT_TRUE(norms.product.empty());
    EXPECT_NEAR(buckets.Norm() * buckets.Norm(), Sqr(*plain->a) + Sqr(*plain->b), 1e-5);
    buckets.KeepAsPrevious();
  }
}

// The first layer's output runs a backward pass of its own when its gradient comes, as a
// checkpointed layer does: the second layer's gradients come once more, when they have come
// already.
at::Tensor LossWithinWhichAnotherIsRun(Net& net, const Data& data, std::int64_t begin,
                                       std::int64_t size) {
  const at::Tensor x = data.x.narrow(0, begin, size).to(net.a->weight.device());
  const at::Tensor y = data.y.narrow(0, begin, size).to(net.a->weight.device());
  const at::Tensor hidden = at::tanh(net.a(x));
  const at::Tensor beside = net.b(hidden.detach()).pow(2).mean();
  hidden.register_hook([beside](const at::Tensor&) { beside.backward(); });
  return torch::nn::functional::mse_loss(net.b(hidden), y);
}

TEST_P(GradientBucketsTest, AGradientThatComesTwiceInOneBackwardAddsUp) {
  const Data data;
  for (const bool keep : {true, false}) {
    const auto net = MakeNet();
    const auto plain = MakeNet();
    const auto collectives = Alone();
    GradientBuckets buckets = MakeBuckets(ParametersOf(*net), 2);
    for (int step = 0; step < 2; ++step) {
      SCOPED_TRACE(step);
      plain->zero_grad();
      LossWithinWhichAnotherIsRun(*plain, data, 0, 12).backward();
      buckets.Begin({.keep = keep}, *collectives, 1);
      LossWithinWhichAnotherIsRun(*net, data, 0, 12).backward();
      buckets.End();
      if (!keep) {
        ASSERT_TRUE(buckets.Reduce().ok());
      }
      ExpectSameGradients(*net, *plain);
      EXPECT_TRUE(buckets.in_parts());
      EXPECT_NEAR(buckets.MeasureStep(false).sqr[0], Sqr(*plain->a), 1e-5);
    }
  }
}

TEST_P(GradientBucketsTest, ItAddsUpOverMicrobatches) {
  const Data data;
  const auto net = MakeNet();
  const auto plain = MakeNet();
  const auto collectives = Alone();
  LossWithinWhichAnotherIsRun(*plain, data, 0, 12).backward();
  GradientBuckets buckets = MakeBuckets(ParametersOf(*net), 2);
  for (const std::int64_t begin : {0, 4, 8}) {
    buckets.Begin({.weight = 1.0 / 3, .first = begin == 0, .last = begin == 8}, *collectives, 1);
    LossWithinWhichAnotherIsRun(*net, data, begin, 4).backward();
    buckets.End();
  }
  ASSERT_TRUE(buckets.Reduce().ok());
  ExpectSameGradients(*net, *plain);
}

// Here the buckets of what comes again are under way on that member, and on the others nothing
// comes again.
TEST_P(GradientBucketsTest, WhatComesAgainOnOneMemberIsReducedOverAll) {
  const Data data;
  std::vector<std::unique_ptr<Collectives>> members;
  for (int rank = 0; rank < 3; ++rank) members.push_back(*MakeGlooCollectives({}));
  const auto plain = MakeNet();
  for (const std::int64_t begin : {0, 4, 8}) {
    const at::Tensor loss = begin == 4 ? LossWithinWhichAnotherIsRun(*plain, data, begin, 4)
                                       : data.Loss(*plain, begin, 4);
    loss.backward();
  }
  for (const auto& p : plain->parameters()) {
    if (p.grad().defined()) p.mutable_grad().div_(3);
  }
  std::vector<std::future<void>> running;
  for (int rank = 0; rank < 3; ++rank) {
    running.push_back(std::async(std::launch::async, [&, rank] {
      Collectives& collectives = *members[static_cast<std::size_t>(rank)];
      ASSERT_TRUE(collectives.Form({1, rank, 3, members[0]->Address()}).ok());
      const auto net = [] {
        static std::mutex one_at_a_time;  // they are made by one random generator
        const std::lock_guard lock(one_at_a_time);
        return MakeNet();
      }();
      GradientBuckets buckets = MakeBuckets(ParametersOf(*net), 2);
      for (int step = 0; step < 3; ++step) {
        buckets.Begin({.weight = 1.0 / 3}, collectives, 3);
        const at::Tensor loss = rank == 1 ? LossWithinWhichAnotherIsRun(*net, data, 4, 4)
                                          : data.Loss(*net, std::int64_t{4} * rank, 4);
        loss.backward();
        buckets.End();
        ASSERT_TRUE(buckets.Reduce().ok());
        EXPECT_TRUE(buckets.in_parts()) << "on every member";
        ExpectSameGradients(*net, *plain);
      }
    }));
  }
  for (auto& r : running) r.get();
}

TEST_P(GradientBucketsTest, AGradientWithAGraphOfItsOwnIsRefused) {
  const Data data;
  const auto net = MakeNet();
  const auto collectives = Alone();
  GradientBuckets buckets = MakeBuckets(ParametersOf(*net), 2);
  buckets.Begin({.keep = true}, *collectives, 1);
  EXPECT_THROW(data.Loss(*net, 0, 12).backward({}, /*retain_graph=*/true, /*create_graph=*/true),
               std::invalid_argument);
}

TEST_P(GradientBucketsTest, HooksOfTheProgramAreSeenOnce) {
  const auto net = MakeNet();
  GradientBuckets buckets = MakeBuckets(ParametersOf(*net), 2);
  EXPECT_FALSE(buckets.HasNewHooks());
  net->b->weight.register_hook([](const at::Tensor& gradient) { return gradient * 2; });
  EXPECT_TRUE(buckets.HasNewHooks());
  EXPECT_FALSE(buckets.HasNewHooks());
}

// It sees the sums, and what was measured is not what it makes of them.
TEST_P(GradientBucketsTest, WhatIsDoneToTheSumsCounts) {
  const Data data;
  const auto net = MakeNet();
  const auto plain = MakeNet();
  const auto collectives = Alone();
  data.Loss(*plain, 0, 12).backward();
  GradientBuckets buckets = MakeBuckets(ParametersOf(*net), 2);
  buckets.AtSum([&] {
    ExpectSameGradients(*net, *plain);
    net->a->weight.mutable_grad().clamp_(-0.01, 0.01);
  });
  for (const std::int64_t begin : {0, 6}) {
    buckets.Begin({.weight = 0.5, .first = begin == 0, .last = begin == 6}, *collectives, 1);
    data.Loss(*net, begin, 6).backward();
    buckets.End();
  }
  ASSERT_TRUE(buckets.Reduce().ok());
  EXPECT_NEAR(buckets.MeasureStep(false).sqr[0], Sqr(*plain->a), 1e-5);
  plain->a->weight.mutable_grad().clamp_(-0.01, 0.01);
  ExpectSameGradients(*net, *plain);
}

TEST_P(GradientBucketsTest, WhatIsZeroedBetweenTwoBackwardPassesIsOfNoStep) {
  const Data data;
  const auto net = MakeNet();
  const auto plain = MakeNet();
  const auto collectives = Alone();
  GradientBuckets buckets = MakeBuckets(ParametersOf(*net), 2);
  const std::vector<std::size_t> all{0, 1, 2, 3};
  for (int step = 0; step < 2; ++step) {
    plain->zero_grad();
    for (const std::int64_t begin : {0, 6}) {
      const bool last = begin == 6;
      buckets.Begin({.weight = 0.5, .first = !last, .last = last}, *collectives, 1);
      data.Loss(*net, 0, 12).backward();
      buckets.End();
      if (last) {
        ASSERT_TRUE(buckets.Reduce().ok());
      }
      EXPECT_TRUE(buckets.Zero(all));
      EXPECT_FALSE(net->a->weight.grad().defined());
      buckets.Reopen(last);
      data.Loss(*net, begin, 6).backward();
      buckets.End();
      (data.Loss(*plain, begin, 6) * 0.5).backward();
    }
    ASSERT_TRUE(buckets.Reduce().ok());
    ExpectSameGradients(*net, *plain);
  }
}

TEST_P(GradientBucketsTest, AGradientThatIsZeroedAndDoesNotComeAgainIsNone) {
  const Data data;
  const auto net = MakeNet();
  const auto collectives = Alone();
  GradientBuckets buckets = MakeBuckets(ParametersOf(*net), 2);
  for (const bool keep : {false, true}) {
    buckets.Begin({.keep = keep}, *collectives, 1);
    data.Loss(*net, 0, 12).backward();
    buckets.End();
    if (!keep) {
      ASSERT_TRUE(buckets.Reduce().ok());
    }
    EXPECT_TRUE(buckets.Zero({0, 1}));  // the first layer
    buckets.Reopen(/*last=*/true);
    net->b(at::ones({1, 9}, net->b->weight.device())).sum().backward();
    buckets.End();
    if (!keep) {
      ASSERT_TRUE(buckets.Reduce().ok());
    }
    EXPECT_FALSE(net->a->weight.grad().defined());
    EXPECT_TRUE(net->b->weight.grad().defined());
    buckets.MeasureStep(true);
  }
}

TEST_P(GradientBucketsTest, TheFirstZeroingOfAProgramIsInAFirstPass) {
  const Data data;
  const auto net = MakeNet();
  const auto collectives = Alone();
  GradientBuckets buckets = MakeBuckets(ParametersOf(*net), 2);
  for (const bool last : {false, true}) {
    buckets.Begin({.weight = 0.5, .first = !last, .last = last}, *collectives, 1);
    data.Loss(*net, 0, 12).backward();
    buckets.End();
  }
  EXPECT_FALSE(buckets.Zero({0, 1}));
  ASSERT_TRUE(buckets.Reduce().ok());
  net->a->weight.mutable_grad().reset();
  EXPECT_THROW(buckets.Reopen(/*last=*/true), std::invalid_argument);
}

// Weights of convolutions for channels_last: their gradients keep that order, which optimizers are
// fast by, and mean the same.
TEST_P(GradientBucketsTest, GradientsLieInTheOrderOfTheirParameters) {
  const auto collectives = Alone();
  at::manual_seed(9);
  const at::Tensor plain = torch::randn({3, 4, 2, 2}, TestDevice()).requires_grad_();
  const at::Tensor ordered = plain.detach().clone(at::MemoryFormat::ChannelsLast).requires_grad_();
  const at::Tensor x = torch::randn({3, 4, 2, 2}, TestDevice());
  GradientBuckets buckets = MakeBuckets({{ordered, 0}}, 1);
  for (const bool keep : {false, true, true}) {
    buckets.Begin({.keep = keep}, *collectives, 1);
    (ordered.tanh() * x).sum().backward();
    buckets.End();
    if (!keep) {
      ASSERT_TRUE(buckets.Reduce().ok());
    }
    plain.mutable_grad().reset();
    (plain.tanh() * x).sum().backward();
    EXPECT_EQ(ordered.grad().strides(), ordered.strides());
    EXPECT_TRUE(at::allclose(ordered.grad(), plain.grad(), 1e-5, 1e-6));
    const auto sqr = plain.grad().pow(2).sum().item<double>();
    const auto norms = buckets.MeasureStep(true);
    EXPECT_NEAR(norms.sqr[0], sqr, 1e-4 * sqr);
    for (const double product : norms.product) EXPECT_NEAR(product, sqr, 1e-4 * sqr);
    buckets.KeepAsPrevious();
  }
}

// A group that has grown beyond the tail's usual room, and shrunk again.
TEST_P(GradientBucketsTest, TheTailFollowsTheSizeOfTheGroup) {
  const Data data;
  const auto net = MakeNet();
  const auto collectives = Alone();
  GradientBuckets buckets = MakeBuckets(ParametersOf(*net), 2);
  for (const int replicas : {1, 200, 1, 200, 1}) {
    buckets.Begin({}, *collectives, replicas);
    data.Loss(*net, 0, 4).backward();
    buckets.End();
    buckets.SetComputeTime(replicas - 1, 3);
    ASSERT_TRUE(buckets.Reduce().ok());
    EXPECT_EQ(buckets.compute_time_s(replicas - 1), 3);
    buckets.MeasureStep(true);
    buckets.KeepAsPrevious();
  }
}

}  // namespace
}  // namespace espalier
