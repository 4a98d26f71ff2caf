#include "trial_runner/torch/gradient_buckets.h"

#include <ATen/record_function.h>
#include <sys/resource.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>
#include <unistd.h>

#include <cstdlib>
#include <future>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"
#include "tests/trial_runner/collectives/forwarding_collectives.h"
#include "trial_runner/collectives/gloo_collectives.h"
#include "trial_runner/torch/device.h"
#include "trial_runner/torch/norm_kernels.h"

namespace espalier {
namespace {

constexpr std::int64_t kSmallBuckets = 200;  // bytes: each layer below has several

// The last layer gets no gradient.
struct Net : torch::nn::Module {
  Net()
      : a(register_module("a", torch::nn::Linear(6, 9))),
        b(register_module("b", torch::nn::Linear(9, 4))),
        unused(register_module("unused", torch::nn::Linear(3, 3))) {}
  at::Tensor forward(const at::Tensor& x) { return b(at::tanh(a(x))); }
  torch::nn::Linear a, b, unused;
};

struct Data {
  Data() {
    const auto generator = at::detail::createCPUGenerator(3);
    x = torch::randn({12, 6}, generator);
    y = torch::randn({12, 4}, generator);
  }
  at::Tensor Loss(Net& net, std::int64_t begin, std::int64_t size) const {
    const at::Device device = net.a->weight.device();
    return torch::nn::functional::mse_loss(net.forward(x.narrow(0, begin, size).to(device)),
                                           y.narrow(0, begin, size).to(device));
  }
  at::Tensor x, y;
};

// ESPALIER_TEST_DEVICE=cuda: the GPU, for what is not of the host alone.
at::Device TestDevice() {
  static const at::Device device = [] {
    const char* named = std::getenv("ESPALIER_TEST_DEVICE");
    if (named == nullptr || std::string(named) != "cuda") return at::Device(at::kCPU);
    const auto assigned = AssignedDevice();
    EXPECT_TRUE(assigned.ok()) << assigned.status();
    return *assigned;
  }();
  return device;
}

// The same weights each time.
std::unique_ptr<Net> MakeNet(at::Device device = TestDevice()) {
  at::manual_seed(5);
  auto net = std::make_unique<Net>();
  net->to(device);
  return net;
}

// The first layer is one optimizer group, the others another.
std::vector<GradientBuckets::Parameter> ParametersOf(Net& net) {
  std::vector<GradientBuckets::Parameter> parameters;
  for (const auto& p : net.a->parameters()) parameters.push_back({p, 0});
  for (const auto& p : net.b->parameters()) parameters.push_back({p, 1});
  for (const auto& p : net.unused->parameters()) parameters.push_back({p, 1});
  return parameters;
}

std::unique_ptr<Collectives> Alone() {
  auto made = MakeGlooCollectives({});
  EXPECT_TRUE(made.ok()) << made.status();
  EXPECT_TRUE((*made)->Form({1, 0, 1, (*made)->Address()}).ok());
  return *std::move(made);
}

double Sqr(const torch::nn::Module& module) {
  double sum = 0;
  for (const auto& p : module.parameters()) sum += p.grad().pow(2).sum().item<double>();
  return sum;
}

void ExpectSameGradients(Net& net, Net& plain) {
  for (const auto& item : net.named_parameters()) {
    const at::Tensor expected = plain.named_parameters()[item.key()].grad();
    ASSERT_EQ(item.value().grad().defined(), expected.defined()) << item.key();
    if (expected.defined()) {
      EXPECT_TRUE(at::allclose(item.value().grad().cpu(), expected.cpu(), 1e-5, 1e-6))
          << item.key();
    }
  }
}

// With the host's loops, and with the operations that a GPU's memory is worked on by, here on the
// CPU's.
using Arithmetic = GradientBuckets::Arithmetic;
class GradientBucketsTest : public ::testing::TestWithParam<Arithmetic> {};

// The host's loops work on the host's memory alone.
std::vector<Arithmetic> Ways() {
  if (!TestDevice().is_cpu()) return {Arithmetic::kBucketOperations};
  return {Arithmetic::kHostLoops, Arithmetic::kBucketOperations};
}

INSTANTIATE_TEST_SUITE_P(EachWay, GradientBucketsTest, ::testing::ValuesIn(Ways()),
                         [](const auto& way) {
                           return way.param == Arithmetic::kHostLoops ? "HostLoops"
                                                                      : "BucketOperations";
                         });

TEST_P(GradientBucketsTest, SumsMicrobatchesByWeightAndMeasuresEachOfThem) {
  const Data data;
  const auto net = MakeNet();
  const auto plain = MakeNet();
  const auto collectives = Alone();
  GradientBuckets buckets(ParametersOf(*net), 2, kSmallBuckets, GetParam());
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
      GradientBuckets buckets(ParametersOf(*nets[r]), 2, kSmallBuckets, GetParam());
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
  GradientBuckets buckets(ParametersOf(*net), 2, kSmallBuckets, GetParam());
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
  GradientBuckets buckets(ParametersOf(*net), 2, kSmallBuckets, GetParam());
  data.Loss(*net, 0, 3).backward();  // outside of a pass
  buckets.Begin({.weight = 1}, *collectives, 1);
  data.Loss(*net, 3, 6).backward();
  buckets.End();
  data.Loss(*net, 9, 3).backward();
  ASSERT_TRUE(buckets.Reduce().ok());
  data.Loss(*plain, 3, 6).backward();
  ExpectSameGradients(*net, *plain);
}

void ExpectNear(const std::vector<double>& a, const std::vector<double>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5 * (1 + std::abs(a[i])));
}

// Preconditioners that differ within a group, as a parameter's do which had a gradient less often.
std::vector<Preconditioner> SomePreconditioners(Net& net, int step) {
  at::manual_seed(100 + step);
  std::vector<Preconditioner> all;
  for (const auto& p : ParametersOf(net)) {
    all.push_back({torch::rand(p.tensor.sizes()).to(p.tensor.device()), 1.0 + 0.1 * step, 1e-3});
  }
  all[1].factor *= 2;
  all[2] = Preconditioner{};  // not scaled at all
  return all;
}

// Kept and reduced steps in turns, with and without preconditioners, clipping and a parameter that
// has a gradient now and then.
TEST(GradientBuckets, BothWaysComeToTheSameNumbers) {
  const Data data;
  const auto collectives = Alone();
  const std::unique_ptr<Net> nets[] = {MakeNet(at::kCPU), MakeNet()};
  std::vector<std::unique_ptr<GradientBuckets>> ways;
  for (const auto way : {Arithmetic::kHostLoops, Arithmetic::kBucketOperations}) {
    ways.push_back(
        std::make_unique<GradientBuckets>(ParametersOf(*nets[ways.size()]), 2, kSmallBuckets, way));
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

// What the device goes on with, and what the host finds out later.
TEST(GradientBuckets, AMeasurementThatNobodyWaitsForComesToTheSameNumbers) {
  const Data data;
  const auto collectives = Alone();
  const std::unique_ptr<Net> nets[] = {MakeNet(), MakeNet()};
  GradientBuckets waited(ParametersOf(*nets[0]), 2, kSmallBuckets, Arithmetic::kBucketOperations);
  GradientBuckets later(ParametersOf(*nets[1]), 2, kSmallBuckets, Arithmetic::kBucketOperations);
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

// As where a user's hook throws in the middle of backward.
TEST_P(GradientBucketsTest, APassThatThrewLeavesNothingToTheNext) {
  const Data data;
  const auto net = MakeNet();
  const auto plain = MakeNet();
  const auto collectives = Alone();
  GradientBuckets buckets(ParametersOf(*net), 2, /*bucket_bytes=*/1 << 20, GetParam());
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
  GradientBuckets buckets(ParametersOf(*net), 2, /*bucket_bytes=*/4, GetParam());
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

TEST(GradientBuckets, GroupsAreFiniteEachForItself) {
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
TEST(GradientBuckets, MeasureAStepByAFewOperations) {
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

// Adam's second moments lie in the order of their parameter as well.
TEST_P(GradientBucketsTest, ScalesLieInTheOrderOfTheirParameters) {
  const auto collectives = Alone();
  at::manual_seed(9);
  const at::Tensor weight = torch::randn({3, 4, 2, 2}, TestDevice())
                                .contiguous(at::MemoryFormat::ChannelsLast)
                                .requires_grad_();
  const at::Tensor x = torch::randn({3, 4, 2, 2}, TestDevice());
  const at::Tensor moment = torch::rand_like(weight);
  ASSERT_EQ(moment.strides(), weight.strides());
  GradientBuckets buckets({{weight, 0}}, 1, kSmallBuckets, GetParam());
  buckets.SetPreconditioners({{moment, 1.5, 1e-3}});
  buckets.Begin({.keep = true}, *collectives, 1);
  (weight * x).sum().backward();
  buckets.End();
  const double expected = (x / (moment.sqrt() * 1.5 + 1e-3)).pow(2).sum().item<double>();
  EXPECT_NEAR(buckets.MeasureStep(false).sqr.at(0), expected, 1e-5 * expected);
}

// Weights of convolutions for channels_last: their gradients keep that order, which optimizers are
// fast by, and mean the same.
TEST_P(GradientBucketsTest, GradientsLieInTheOrderOfTheirParameters) {
  const auto collectives = Alone();
  at::manual_seed(9);
  const at::Tensor plain = torch::randn({3, 4, 2, 2}, TestDevice()).requires_grad_();
  const at::Tensor ordered = plain.detach().clone(at::MemoryFormat::ChannelsLast).requires_grad_();
  const at::Tensor x = torch::randn({3, 4, 2, 2}, TestDevice());
  GradientBuckets buckets({{ordered, 0}}, 1, kSmallBuckets, GetParam());
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
    const double sqr = plain.grad().pow(2).sum().item<double>();
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
  GradientBuckets buckets(ParametersOf(*net), 2, kSmallBuckets, GetParam());
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

TEST(NormKernels, EqualSumsInDouble) {
  for (const std::int64_t size : {0, 1, 17, 4096, 10001}) {
    at::manual_seed(size);
    const at::Tensor g = torch::randn({size});
    const at::Tensor p = torch::randn({size});
    const at::Tensor v = torch::rand({size});
    const auto n = static_cast<std::size_t>(size);
    const float* gradient = g.const_data_ptr<float>();
    const float* previous = p.const_data_ptr<float>();
    const at::Tensor divisor = v.to(at::kDouble).sqrt() * 1.25 + 0.01;
    for (const bool scaled : {false, true}) {
      const ElementScale scale =
          scaled ? ElementScale{v.const_data_ptr<float>(), 1.25F, 0.01F} : ElementScale{};
      const at::Tensor a = scaled ? g.to(at::kDouble) / divisor : g.to(at::kDouble);
      const at::Tensor b = scaled ? p.to(at::kDouble) / divisor : p.to(at::kDouble);
      const double sqr = a.pow(2).sum().item<double>();
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
