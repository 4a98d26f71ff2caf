// What GradientBuckets measures, by each of its ways; and the host's loops by which it does.

#include <ATen/record_function.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/trial_runner/collectives/forwarding_collectives.h"
#include "tests/trial_runner/torch/gradients/buckets_under_test.h"
#include "trial_runner/kernels/norm_kernels.h"

namespace espalier {
namespace {

class GradientNormsTest : public GradientBucketsTest {};
class BucketOperationsTest : public GradientBucketsTest {};  // without the host's loops

INSTANTIATE_TEST_SUITE_P(EachWay, GradientNormsTest, ::testing::ValuesIn(Ways()), NameOfWay);
INSTANTIATE_TEST_SUITE_P(EachWay, BucketOperationsTest, ::testing::ValuesIn(OperationWays()),
                         NameOfWay);

// Kept and reduced steps in turns, with and without preconditioners, clipping and a parameter that
// has a gradient now and then.
TEST_P(GradientNormsTest, ComesToTheNumbersOfTheHostsLoops) {
  const Data data;
  const auto collectives = Alone();
  const std::unique_ptr<Net> nets[] = {MakeNet(at::kCPU), MakeNet()};
  std::vector<std::unique_ptr<GradientBuckets>> ways;
  for (const Way& way : {Way{"HostLoops", Arithmetic::kHostLoops}, GetParam()}) {
    ways.push_back(std::make_unique<GradientBuckets>(ParametersOf(*nets[ways.size()]), 2,
                                                     kSmallBuckets, way.arithmetic, way.kernel));
  }
  for (int step = 0; step < 12; ++step) {
    const bool keep = step % 4 < 2;
    GradientBuckets::Norms norms[2];
    for (std::size_t w = 0; w < 2; ++w) {
      GradientBuckets& buckets = *ways[w];
      Net& net = *nets[w];
      if (step > 3) buckets.SetPreconditioners(SomePreconditioners(net, step));
      for (const bool first : {true, false}) {
        if (keep && !first) break;
        buckets.Begin({.weight = keep ? 1.0 : 0.5,
                       .first = first,
                       .last = keep || !first,
                       .keep = keep,
                       .norm_factor = 0.25},
                      *collectives, 1);
        at::Tensor loss = data.Loss(net, step % 3 + (first ? 0 : 4), 4);
        if (step % 5 == 0) loss = loss + net.unused->forward(at::ones({3}, loss.device())).sum();
        loss.backward();
        buckets.End();
      }
      if (!keep) {
        ASSERT_TRUE(buckets.Reduce().ok());
      }
      norms[w] = buckets.MeasureStep(true);
      step % 6 == 5 ? buckets.DropPrevious() : buckets.KeepAsPrevious();
    }
    SCOPED_TRACE(step);
    ExpectNear(norms[0].sqr, norms[1].sqr);
    ExpectNear(norms[0].previous_sqr, norms[1].previous_sqr);
    ExpectNear(norms[0].product, norms[1].product);
    EXPECT_EQ(norms[0].product.empty(), step % 6 == 0);
    EXPECT_NEAR(ways[0]->Norm(), ways[1]->Norm(), 1e-5);
    if (!keep) ExpectNear(ways[0]->LocalSqr(), ways[1]->LocalSqr());
    for (const auto& buckets : ways) buckets->Scale(0.5);
    ExpectSameGradients(*nets[1], *nets[0]);
    for (const auto& net : nets) net->zero_grad();
  }
}

// Clipping, say, or an optimizer that works on the gradients themselves.
TEST_P(GradientNormsTest, WhatIsMeasuredIsTheGradientBeforeTheProgramChangesIt) {
  const Data data;
  const auto collectives = Alone();
  for (const bool keep : {true, false}) {
    const std::unique_ptr<Net> nets[] = {MakeNet(), MakeNet()};
    std::vector<std::unique_ptr<GradientBuckets>> all;
    for (const auto& net : nets) {
      all.push_back(std::make_unique<GradientBuckets>(ParametersOf(*net), 2, kSmallBuckets,
                                                      GetParam().arithmetic, GetParam().kernel));
    }
    for (int step = 0; step < 4; ++step) {
      SCOPED_TRACE(testing::Message() << (keep ? "kept" : "reduced") << ", step " << step);
      GradientBuckets::Norms norms[2];
      for (std::size_t w = 0; w < 2; ++w) {
        GradientBuckets& buckets = *all[w];
        buckets.Begin({.keep = keep}, *collectives, 1);
        (data.Loss(*nets[w], step, 4) * 30).backward();
        buckets.End();
        if (keep) {
          buckets.MeasureKept();
        } else {
          ASSERT_TRUE(buckets.Reduce().ok());
        }
        for (const auto& p : ParametersOf(*nets[w])) {
          if (w == 1 && p.tensor.grad().defined()) p.tensor.grad().mul_(0.125);
        }
        norms[w] = buckets.MeasureStep(true);
        keep ? buckets.KeepAsPrevious() : buckets.DropPrevious();
      }
      ExpectNear(norms[1].sqr, norms[0].sqr);
      EXPECT_NEAR(all[1]->Norm(), all[0]->Norm() / 8, 1e-5 * all[0]->Norm());
      EXPECT_EQ(norms[0].product.empty(), !keep || step == 0);
      if (step == 1) {
        EXPECT_TRUE(norms[1].product.empty()) << "the step before had been changed";
      } else {
        ExpectNear(norms[1].product, norms[0].product);
        ExpectNear(norms[1].previous_sqr, norms[0].previous_sqr);
      }
    }
  }
}

// One of them may have a step before from when it was alone, another none, as one that sat that
// step out.
TEST_P(GradientNormsTest, OfSeveralReplicasAreTheSameToTheLastBitWhateverCameBefore) {
  const Data data;
  const auto collectives = Alone();
  for (const bool preconditioned : {false, true}) {
    GradientBuckets::Norms norms[2];
    for (const bool was_alone : {false, true}) {
      const auto net = MakeNet();
      GradientBuckets buckets = MakeBuckets(ParametersOf(*net), 2);
      if (was_alone) {
        buckets.Begin({.keep = true}, *collectives, 1);
        data.Loss(*net, 0, 12).backward();
        buckets.End();
        buckets.MeasureStep(false);
        buckets.KeepAsPrevious();
      }
      if (preconditioned) buckets.SetPreconditioners(SomePreconditioners(*net, 1));
      buckets.Begin({.weight = 0.5}, *collectives, 2);
      data.Loss(*net, 4, 4).backward();
      buckets.End();
      ASSERT_TRUE(buckets.Reduce().ok());
      norms[was_alone ? 1 : 0] = buckets.MeasureStep(false);
    }
    EXPECT_EQ(norms[0].sqr, norms[1].sqr);
  }
}

// Sums as with another replica that has the same gradients, each of which is there when it is
// waited for, and no earlier.
class SumsInTurn : public ForwardingCollectives {
 public:
  SumsInTurn() : ForwardingCollectives(Alone()) {}
  void StartAllReduceSum(const CollectiveBuffer& b) override { begun_.push_back(b); }
  absl::Status WaitAll() override { return WaitAllInTurn({}); }
  absl::Status WaitAllInTurn(const EachDone& each) override {
    for (const CollectiveBuffer& b : std::exchange(begun_, {})) {
      auto* const values = static_cast<float*>(b.start);
      for (std::int64_t i = 0; i < b.count; ++i) values[i] *= 2;
      if (each) each(b.start);
    }
    return absl::OkStatus();
  }

 private:
  std::vector<CollectiveBuffer> begun_;
};

TEST(GradientNorms, OfAModelWhoseSumsComeBetweenThoseOfAnother) {
  const Data data;
  std::vector<std::vector<double>> norms;
  for (const bool beside_another : {false, true}) {
    SumsInTurn collectives;
    const auto net = MakeNet(at::kCPU);
    const auto other = MakeNet(at::kCPU);
    GradientBuckets buckets(ParametersOf(*net), 2, kSmallBuckets, Arithmetic::kHostLoops);
    GradientBuckets others(ParametersOf(*other), 2, kSmallBuckets, Arithmetic::kHostLoops);
    buckets.Begin({}, collectives, 2);
    others.Begin({}, collectives, 2);
    // Of all parameters, so that no bucket waits for the end.
    const auto loss = [&](Net& of) {
      return data.Loss(of, 0, 4) + of.unused->forward(at::ones({3})).sum();
    };
    if (beside_another) (loss(*net) + loss(*other)).backward();
    for (GradientBuckets* of : {&buckets, &others}) {
      if (!beside_another) loss(of == &buckets ? *net : *other).backward();
      of->End();
      ASSERT_TRUE(of->Reduce().ok());
      norms.push_back(of->MeasureStep(false).sqr);
    }
  }
  for (const std::vector<double>& sqr : norms) EXPECT_EQ(sqr, norms.front());
}

// What the device goes on with, and what the host finds out later.
TEST_P(BucketOperationsTest, AMeasurementThatNobodyWaitsForComesToTheSameNumbers) {
  const Data data;
  const auto collectives = Alone();
  const std::unique_ptr<Net> nets[] = {MakeNet(), MakeNet()};
  GradientBuckets waited(ParametersOf(*nets[0]), 2, kSmallBuckets, Arithmetic::kBucketOperations);
  GradientBuckets later(ParametersOf(*nets[1]), 2, kSmallBuckets, Arithmetic::kBucketOperations,
                        GetParam().kernel);
  for (int step = 0; step < 8; ++step) {
    SCOPED_TRACE(step);
    if (step > 3) waited.SetPreconditioners(SomePreconditioners(*nets[0], step));
    if (step > 3) later.SetPreconditioners(SomePreconditioners(*nets[1], step));
    for (GradientBuckets* buckets : {&waited, &later}) {
      buckets->Begin({.keep = true}, *collectives, 1);
      data.Loss(*nets[buckets == &later ? 1 : 0], step, 4).backward();
      buckets->End();
    }
    const auto measurement = later.BeginMeasuring(/*previous=*/step != 5);
    const auto expected = waited.MeasureStep(step != 5);
    waited.KeepAsPrevious();
    later.KeepAsPrevious();
    const double limit = waited.Norm() * (step % 2 == 0 ? 0.5 : 2);  // clips, or does not
    if (waited.Norm() > limit) waited.Scale(limit / waited.Norm());
    later.Clip(measurement, limit);
    ExpectSameGradients(*nets[1], *nets[0]);
    EXPECT_EQ(later.FoundNotFinite(measurement).item<float>(), 0);
    const auto norms = later.Await(measurement);
    ExpectNear(expected.sqr, norms.sqr);
    ExpectNear(expected.previous_sqr, norms.previous_sqr);
    ExpectNear(expected.product, norms.product);
    EXPECT_EQ(norms.product.empty(), step == 0 || step == 5);
  }
  later.Begin({.keep = true}, *collectives, 1);
  (data.Loss(*nets[1], 0, 4) * std::numeric_limits<float>::infinity()).backward();
  later.End();
  const auto broken = later.BeginMeasuring(true);
  EXPECT_EQ(later.FoundNotFinite(broken).item<float>(), 1);
  EXPECT_FALSE(later.Await(broken).finite());
}

TEST(GradientNorms, GroupsAreFiniteEachForItself) {
  const auto net = MakeNet();
  const GradientBuckets buckets(ParametersOf(*net), 2, kSmallBuckets,
                                Arithmetic::kBucketOperations);
  GradientBuckets::Measurement measurement;
  measurement.sums = torch::tensor({3e38, 3e38, 0.0, 0.0, 0.0, 0.0, 0.0}, at::kFloat);
  EXPECT_EQ(buckets.FoundNotFinite(measurement).item<float>(), 0) << "though their sum is not";
  measurement.sums[1] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(buckets.FoundNotFinite(measurement).item<float>(), 1);
}

// However many buckets there are: the memory of a group's goes on from one to the next.
TEST(GradientNorms, MeasureAStepByAFewOperations) {
  const Data data;
  const auto net = MakeNet();
  const auto collectives = Alone();
  GradientBuckets buckets(ParametersOf(*net), 2, /*bucket_bytes=*/4, Arithmetic::kBucketOperations);
  for (const bool compared : {false, true}) {
    buckets.Begin({.keep = true}, *collectives, 1);
    data.Loss(*net, 0, 6).backward();
    buckets.End();
    static std::int64_t products = 0;
    products = 0;
    const auto counter = at::addThreadLocalCallback(at::RecordFunctionCallback(
        [](const at::RecordFunction& call) -> std::unique_ptr<at::ObserverContext> {
          products += call.name() == std::string("aten::dot") ? 1 : 0;
          return nullptr;
        }));
    buckets.MeasureStep(true);
    at::removeCallback(counter);
    EXPECT_EQ(products, compared ? 6 : 2) << "one each for two groups";
    buckets.KeepAsPrevious();
  }
}

// What the kernel was asked for.
std::vector<GradientSums>& Asked() {
  static std::vector<GradientSums> asked;
  return asked;
}
absl::Status Ask(const GradientSums& sums, int device) {
  Asked().push_back(sums);
  return TestKernel()(sums, device);
}

// A gradient that lies as its parameter does is read from where backward has left it, and a second
// moment from the optimizer's own memory.
TEST(GradientNorms, TheKernelReadsWhatIsThereAndNoCopy) {
  const auto collectives = Alone();
  at::manual_seed(9);
  const at::Tensor weight = torch::randn({3, 4, 2, 2}, TestDevice())
                                .contiguous(at::MemoryFormat::ChannelsLast)
                                .requires_grad_();
  const at::Tensor bias = torch::randn({3}, TestDevice()).requires_grad_();
  const at::Tensor moment = torch::rand_like(weight);
  GradientBuckets buckets({{weight, 0}, {bias, 1}}, 2, /*bucket_bytes=*/1 << 20,
                          Arithmetic::kBucketOperations, Ask);
  for (const bool keep : {true, true, false}) {
    SCOPED_TRACE(keep);
    buckets.SetPreconditioners({{moment, 1.5, 1e-3}, {}});
    Asked().clear();
    buckets.Begin({.keep = keep}, *collectives, 1);
    (weight.pow(2).sum() + bias.sum()).backward();
    buckets.End();
    if (!keep) {
      ASSERT_TRUE(buckets.Reduce().ok());
    }
    buckets.MeasureStep(true);
    ASSERT_EQ(Asked().size(), 2U) << "fold and measure";
    const GradientSums& folded = Asked()[0];
    const GradientSums& measured = Asked()[1];
    ASSERT_EQ(folded.pieces.size(), 2U);
    ASSERT_EQ(measured.pieces.size(), 2U);
    EXPECT_EQ(folded.wanted, keep ? 0 : 2);
    EXPECT_EQ(measured.wanted, 7);
    for (const GradientSums* sums : {&folded, &measured}) {
      EXPECT_EQ(sums->pieces[0].scale.second_moment, nullptr);
      EXPECT_EQ(sums->pieces[1].scale.second_moment, moment.const_data_ptr<float>());
    }
    EXPECT_EQ(measured.pieces[1].gradient, folded.pieces[1].folded);
    buckets.KeepAsPrevious();
  }
}

// Neighbours of one group, where nothing tells them apart.
TEST(GradientNorms, TheKernelMeasuresUnscaledGradientsByGroup) {
  const Data data;
  const auto net = MakeNet();
  const auto collectives = Alone();
  GradientBuckets buckets(ParametersOf(*net), 2, /*bucket_bytes=*/4, Arithmetic::kBucketOperations,
                          Ask);
  buckets.Begin({.keep = true}, *collectives, 1);
  data.Loss(*net, 0, 6).backward();
  buckets.End();
  Asked().clear();
  buckets.MeasureStep(false);
  ASSERT_EQ(Asked().size(), 1U);
  EXPECT_EQ(Asked()[0].pieces.size(), 2U);
}

// More pieces than a launch has, at places of any alignment: what the kernel itself finds, on a GPU
// the real one. gradient_sums_test.cc looks at its blocks, on the host.
struct ManyPieces {
  static constexpr std::int64_t kGroups = 3;

  ManyPieces() {
    std::vector<std::int64_t> sizes{1'000'003, 0, 1, 31, 16384, 16385};
    for (std::int64_t i = 0; i < 150; ++i) sizes.push_back(1000 + i);
    const std::int64_t size = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1});
    at::manual_seed(11);
    for (at::Tensor* values : {&now, &before}) *values = torch::randn({size});
    moments = torch::rand({size});
    device_now = now.to(TestDevice(), /*non_blocking=*/false, /*copy=*/true);
    device_before = before.to(TestDevice());
    device_moments = moments.to(TestDevice());
    folded = torch::ones({size}, TestDevice());
    std::int64_t begin = 1;
    for (std::size_t i = 0; i < sizes.size(); begin += sizes[i++]) Add(begin, sizes[i]);
    last_group = static_cast<std::int64_t>(sizes.size() - 1) % kGroups;
  }

  void Add(std::int64_t begin, std::int64_t size) {
    const std::size_t i = compared.pieces.size();
    const auto group = static_cast<std::int32_t>(i % kGroups);
    GradientPiece piece{
        .gradient = device_now.const_data_ptr<float>() + begin, .count = size, .group = group};
    ElementScale scale;
    if (i % 4 != 1) {
      piece.scale = scale = {device_moments.const_data_ptr<float>() + begin, 1.25F, 1e-3F};
      scale.second_moment = moments.const_data_ptr<float>() + begin;
    }
    fold.pieces.push_back(piece);
    fold.pieces.back().folded = folded.mutable_data_ptr<float>() + begin;
    piece.previous = device_before.const_data_ptr<float>() + begin;
    compared.pieces.push_back(piece);
    const float* const gradient = now.const_data_ptr<float>() + begin;
    const auto count = static_cast<std::size_t>(size);
    const PairNorms pair =
        NormsWithPrevious(gradient, before.const_data_ptr<float>() + begin, count, scale);
    expected[group] += pair.sqr;
    expected[kGroups + group] += pair.previous_sqr;
    expected[2 * kGroups + group] += pair.product;
    expected[3 * kGroups] += SquaredNorm(gradient, count, {});
  }

  static at::Tensor Run(GradientSums what) {
    const std::int64_t numbers = sizeof(GradientPartial) / sizeof(double);
    const auto options = at::TensorOptions(at::kDouble).device(TestDevice());
    const at::Tensor partials = torch::empty({GradientBlocks(what.pieces) * numbers}, options);
    at::Tensor sums = torch::zeros({3 * kGroups + 1}, TestDevice());
    what.sums = sums.mutable_data_ptr<float>();
    what.partials = static_cast<GradientPartial*>(partials.mutable_data_ptr());
    const int index = TestDevice().is_cpu() ? -1 : TestDevice().index();
    const absl::Status begun = TestKernel()(what, index);
    EXPECT_TRUE(begun.ok()) << begun;
    return sums.cpu();
  }

  at::Tensor now, before, moments;
  at::Tensor device_now, device_before, device_moments, folded;
  GradientSums compared{.groups = kGroups, .wanted = 3 * kGroups + 1};
  GradientSums fold{.groups = kGroups, .weight = 0.5F, .add = true, .wanted = kGroups};
  double expected[3 * kGroups + 1] = {};
  std::int64_t last_group = 0;
};

TEST(GradientNorms, OfManyPiecesAreThoseOfTheHostsLoops) {
  ASSERT_NE(TestKernel(), nullptr);
  const ManyPieces many;
  const at::Tensor sums = ManyPieces::Run(many.compared);
  const double largest = *std::max_element(std::begin(many.expected), std::end(many.expected));
  for (std::size_t i = 0; i < std::size(many.expected); ++i) {
    EXPECT_NEAR(sums[static_cast<std::int64_t>(i)].item<double>(), many.expected[i], 1e-5 * largest)
        << "sum " << i;
  }
  EXPECT_TRUE(at::equal(sums, ManyPieces::Run(many.compared))) << "to the last bit";
  many.device_now[-1] = std::numeric_limits<float>::quiet_NaN();
  const at::Tensor finite = ManyPieces::Run(many.compared).isfinite();
  for (std::int64_t g = 0; g < ManyPieces::kGroups; ++g) {
    EXPECT_EQ(finite[g].item<bool>(), g != many.last_group);
    EXPECT_TRUE(finite[ManyPieces::kGroups + g].item<bool>());
  }
}

TEST(GradientNorms, OfManyPiecesAreMeasuredWhileTheyAreFolded) {
  ASSERT_NE(TestKernel(), nullptr);
  const ManyPieces many;
  const at::Tensor sums = ManyPieces::Run(many.fold);
  for (std::size_t g = 0; g < ManyPieces::kGroups; ++g) {
    EXPECT_NEAR(sums[static_cast<std::int64_t>(g)].item<double>(), many.expected[g],
                1e-5 * many.expected[g]);
  }
  at::Tensor by_weight = many.now * 0.5 + 1;
  by_weight[0] = 1;  // of no piece
  EXPECT_TRUE(at::allclose(many.folded.cpu(), by_weight, 1e-6, 1e-6));
}

TEST(GradientNorms, AKernelThatFailsIsAnError) {
  const Data data;
  const auto net = MakeNet();
  const auto collectives = Alone();
  GradientBuckets buckets(ParametersOf(*net), 2, kSmallBuckets, Arithmetic::kBucketOperations,
                          [](const GradientSums& sums, int device) {
                            if (sums.wanted == 0) return TestKernel()(sums, device);
                            return absl::UnavailableError("no kernel image");
                          });
  buckets.Begin({.keep = true}, *collectives, 1);
  data.Loss(*net, 0, 6).backward();
  buckets.End();
  EXPECT_THROW(buckets.MeasureStep(true), c10::Error);
}

// Adam's second moments lie in the order of their parameter as well.
TEST_P(GradientNormsTest, ScalesLieInTheOrderOfTheirParameters) {
  const auto collectives = Alone();
  at::manual_seed(9);
  const at::Tensor weight = torch::randn({3, 4, 2, 2}, TestDevice())
                                .contiguous(at::MemoryFormat::ChannelsLast)
                                .requires_grad_();
  const at::Tensor x = torch::randn({3, 4, 2, 2}, TestDevice());
  const at::Tensor moment = torch::rand_like(weight);
  ASSERT_EQ(moment.strides(), weight.strides());
  GradientBuckets buckets = MakeBuckets({{weight, 0}}, 1);
  buckets.SetPreconditioners({{moment, 1.5, 1e-3}});
  buckets.Begin({.keep = true}, *collectives, 1);
  (weight * x).sum().backward();
  buckets.End();
  const auto expected = (x / (moment.sqrt() * 1.5 + 1e-3)).pow(2).sum().item<double>();
  EXPECT_NEAR(buckets.MeasureStep(false).sqr.at(0), expected, 1e-5 * expected);
}

TEST(NormKernels, EqualSumsInDouble) {
  for (const std::int64_t size : {0, 1, 17, 4096, 10001}) {
    at::manual_seed(static_cast<std::uint64_t>(size));
    const at::Tensor g = torch::randn({size});
    const at::Tensor p = torch::randn({size});
    const at::Tensor v = torch::rand({size});
    const auto n = static_cast<std::size_t>(size);
    const auto* gradient = g.const_data_ptr<float>();
    const auto* previous = p.const_data_ptr<float>();
    const at::Tensor divisor = v.to(at::kDouble).sqrt() * 1.25 + 0.01;
    for (const bool scaled : {false, true}) {
      const ElementScale scale =
          scaled ? ElementScale{v.const_data_ptr<float>(), 1.25F, 0.01F} : ElementScale{};
      const at::Tensor a = scaled ? g.to(at::kDouble) / divisor : g.to(at::kDouble);
      const at::Tensor b = scaled ? p.to(at::kDouble) / divisor : p.to(at::kDouble);
      const auto sqr = a.pow(2).sum().item<double>();
      const double tolerance = 1e-6 * (1 + sqr);
      EXPECT_NEAR(SquaredNorm(gradient, n, scale), sqr, tolerance);
      const PairNorms pair = NormsWithPrevious(gradient, previous, n, scale);
      EXPECT_NEAR(pair.sqr, sqr, tolerance);
      EXPECT_NEAR(pair.previous_sqr, b.pow(2).sum().item<double>(), 2 * tolerance);
      EXPECT_NEAR(pair.product, (a * b).sum().item<double>(), 2 * tolerance);
      at::Tensor into = at::ones({size});
      EXPECT_NEAR(FoldGradient(gradient, n, scale, 0.5F, true, into.mutable_data_ptr<float>()), sqr,
                  tolerance);
      EXPECT_TRUE(at::allclose(into, g * 0.5 + 1));
      FoldGradient(gradient, n, scale, 0.25F, false, into.mutable_data_ptr<float>());
      EXPECT_TRUE(at::allclose(into, g * 0.25));
    }
  }
}

}  // namespace
}  // namespace espalier
