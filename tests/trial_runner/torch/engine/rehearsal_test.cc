// What a rehearsal leaves behind: nothing. One replica that trains alone in this process.

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/record_function.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/any.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>

#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "trial_runner/torch/accumulator.h"
#include "trial_runner/torch/adaptive_data_loader.h"
#include "trial_runner/torch/adaptive_data_parallel.h"
#include "trial_runner/torch/dataset_loader.h"
#include "trial_runner/torch/process/trial_context.h"
#include "trial_runner/torch/trial.h"

namespace espalier {
namespace {

constexpr std::int64_t kExamples = 24;

// A program with a model that draws and remembers.
class RehearsingProgram {
 public:
  // `bucket_operations`: steps as on a GPU.
  explicit RehearsingProgram(const DataParallelOptions& options = {},
                             bool bucket_operations = false)
      : parallel(With(trial, bucket_operations), *net, optimizer, options) {}

  void Microbatch(const at::Tensor& indices) {
    seen.Add("samples", static_cast<double>(indices.numel()));
    parallel.Step(net->forward(examples.index_select(0, indices)).pow(2).mean());
  }
  void Rehearse() {
    parallel.Rehearse([this] { Microbatch(at::arange(8)); });
  }
  // All that the model is, and a draw of the program's own.
  std::vector<at::Tensor> State() const {
    std::vector<at::Tensor> all;
    for (const at::Tensor& p : net->parameters()) all.push_back(p.detach().clone());
    for (const at::Tensor& b : net->buffers()) all.push_back(b.clone());
    all.push_back(at::rand({4}));
    return all;
  }
  // What it has learnt in an epoch.
  std::vector<at::Tensor> Train() {
    while (loader.NextEpoch(1)) {
      while (const auto indices = loader.NextBatch()) Microbatch(*indices);
      EXPECT_EQ(seen.Synchronize().at("samples"), kExamples) << "the rehearsal's are not counted";
    }
    EXPECT_EQ(parallel.steps(), 3);
    return State();
  }

  static Trial& With(Trial& given, bool bucket_operations) {
    given.context().bucket_operations = bucket_operations;
    return given;
  }

  char name[5] = "test";
  char* arguments[1] = {name};
  Trial trial{1, arguments};
  at::Tensor examples = at::randn({kExamples, 4});
  torch::nn::Sequential net{torch::nn::Linear(4, 6), torch::nn::BatchNorm1d(6),
                            torch::nn::Dropout(0.3), torch::nn::Linear(6, 1)};
  torch::optim::Adam optimizer{net->parameters(), 0.01};
  AdaptiveDataParallel parallel;
  AdaptiveDataLoader loader{parallel, kExamples, {.batch_size = 8}};
  Accumulator seen{parallel, "seen", {"samples"}};
};

void ExpectSameTensors(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(at::equal(a[i], b[i])) << "tensor " << i;
}

TEST(Rehearsal, LeavesModelBuffersDrawsAndGradientsAsTheyWere) {
  RehearsingProgram plain;
  const auto before = plain.State();
  for (const bool bucket_operations : {false, true}) {
    RehearsingProgram rehearsed({}, bucket_operations);
    rehearsed.Rehearse();
    ExpectSameTensors(before, rehearsed.State());
    for (const at::Tensor& p : rehearsed.net->parameters()) EXPECT_FALSE(p.grad().defined());
    EXPECT_TRUE(rehearsed.optimizer.state().empty());
    EXPECT_EQ(rehearsed.parallel.steps(), 0);
  }
}

TEST(Rehearsal, OfALoaderGivesABatchOfAsManySamplesAsTheReplicaWillGet) {
  for (const int joins : {0, 2, 5}) {
    RehearsingProgram program;
    program.trial.context().joins = joins;
    const auto before = program.State();
    std::vector<std::int64_t> sizes;
    program.loader.Rehearse([&](const at::Tensor& indices) {
      sizes.push_back(indices.numel());
      program.Microbatch(indices);
    });
    EXPECT_EQ(sizes, std::vector<std::int64_t>{joins == 0 ? 8 : joins == 2 ? 4 : 2});
    EXPECT_EQ(program.parallel.steps(), 0);
    for (const at::Tensor& p : program.net->parameters()) EXPECT_FALSE(p.grad().defined());
  }
}

class IndicesAsData final : public Dataset<at::Tensor> {
 public:
  std::int64_t size() const override { return kExamples; }
  at::Tensor GetBatch(const SampleSelection& samples) const override {
    return at::tensor(std::vector<std::int64_t>(samples.indices.begin(), samples.indices.end()));
  }
};

// What was read for it is neither missing nor read twice afterwards.
TEST(Rehearsal, OfADataSetIsReadByTheThreadsThatReadForTraining) {
  for (const int workers : {0, 2}) {
    RehearsingProgram program;
    const IndicesAsData data;
    DatasetLoader loader(program.parallel, data, {.batch_size = 8, .workers = workers});
    const auto step = [&](const at::Tensor& indices) { program.Microbatch(indices); };
    std::int64_t rehearsed = 0;
    loader.Rehearse([&](const at::Tensor& indices) {
      rehearsed = indices.numel();
      step(indices);
    });
    EXPECT_EQ(rehearsed, 8);
    std::multiset<std::int64_t> seen;
    while (loader.NextEpoch(1)) {
      while (const auto batch = loader.NextBatch()) {
        for (std::int64_t i = 0; i < batch->numel(); ++i) {
          seen.insert((*batch)[i].item<std::int64_t>());
        }
        step(*batch);
      }
    }
    EXPECT_EQ(seen.size(), std::size_t{kExamples});
    EXPECT_EQ(std::set<std::int64_t>(seen.begin(), seen.end()).size(), std::size_t{kExamples});
  }
}

// Of that an optimizer takes its first step in a process only once.
TEST(Rehearsal, AsOnAGpuGoesThroughMeasuringAndTheFusedStep) {
  RehearsingProgram program({}, /*bucket_operations=*/true);
  static std::set<std::string> called;
  const auto listener = at::addThreadLocalCallback(at::RecordFunctionCallback(
      [](const at::RecordFunction& call) -> std::unique_ptr<at::ObserverContext> {
        called.insert(call.name());
        return nullptr;
      }));
  program.Rehearse();
  at::removeCallback(listener);
  EXPECT_EQ(called.count("aten::dot"), 1U);
  EXPECT_EQ(called.count("aten::_fused_adam_"), 1U);
}

TEST(Rehearsal, RunsBackwardThroughTheWholeModel) {
  RehearsingProgram program;
  int gradients = 0;
  for (const at::Tensor& p : program.net->parameters()) {
    p.register_hook([&gradients](const at::Tensor&) { ++gradients; });
  }
  program.Rehearse();
  EXPECT_EQ(gradients, std::ssize(program.net->parameters()));
}

TEST(Rehearsal, DropsWhatOneModelsBackwardLeavesInAnother) {
  RehearsingProgram program;
  torch::nn::Linear second(6, 4);
  torch::optim::Adam optimizer(second->parameters(), 0.01);
  AdaptiveDataParallel parallel(program.trial, *second, optimizer, {.name = "second"});
  program.parallel.Rehearse([&] {
    program.Microbatch(at::arange(8));
    parallel.Step(program.net->forward(second->forward(at::randn({8, 6}))).mean());
  });
  for (const at::Tensor& p : program.net->parameters()) EXPECT_FALSE(p.grad().defined());
}

TEST(Rehearsal, ChangesNothingInWhatIsLearntAfterIt) {
  for (const char* precision : {"", "fp16"}) {
    for (const bool bucket_operations : {false, true}) {
      const DataParallelOptions options{.mixed_precision = precision};
      const auto learnt = RehearsingProgram(options, bucket_operations).Train();
      RehearsingProgram rehearsed(options, bucket_operations);
      rehearsed.Rehearse();
      rehearsed.Rehearse();  // of another shape, perhaps
      ExpectSameTensors(learnt, rehearsed.Train());
    }
  }
}

TEST(Rehearsal, LeavesNothingWhereItsFunctionThrows) {
  RehearsingProgram plain;
  const auto before = plain.State();
  RehearsingProgram rehearsed;
  EXPECT_THROW(rehearsed.parallel.Rehearse([&] {
    rehearsed.net->forward(rehearsed.examples);
    throw std::runtime_error("out of memory");
  }),
               std::runtime_error);
  ExpectSameTensors(before, rehearsed.State());
  rehearsed.Train();
}

// In a process of its own each, that ends.
TEST(RehearsalDeathTest, MisuseEndsTheProgramAndSaysWhy) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const ::testing::ExitedWithCode bad_use(2);
  EXPECT_EXIT(
      {
        RehearsingProgram program;
        program.loader.NextEpoch(1);
        program.Rehearse();
      },
      bad_use, "Rehearse was called after the first NextEpoch");
  EXPECT_EXIT(RehearsingProgram().parallel.Rehearse([] {}), bad_use,
              "called Step for 0 of 1 models");
  EXPECT_EXIT(
      {
        RehearsingProgram program;
        torch::nn::Linear second(4, 1);
        torch::optim::Adam optimizer(second->parameters(), 0.01);
        const AdaptiveDataParallel parallel(program.trial, *second, optimizer, {.name = "second"});
        program.Rehearse();
      },
      bad_use, "called Step for 1 of 2 models");
  EXPECT_EXIT(
      {
        RehearsingProgram program;
        program.parallel.Rehearse([&] {
          program.Microbatch(at::arange(8));
          program.loader.NextEpoch(1);
        });
      },
      bad_use, "NextEpoch was called within Rehearse");
}

}  // namespace
}  // namespace espalier
