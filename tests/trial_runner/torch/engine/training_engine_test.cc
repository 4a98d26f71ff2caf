// What the engine says and tells of a slot with a device. One replica, alone in this process.

#include "trial_runner/torch/engine/training_engine.h"

#include <ATen/ops/ones.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/sgd.h>

#include <cstdlib>
#include <functional>
#include <mutex>
#include <optional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/trial_runner/torch/late_timer.h"
#include "trial_runner/control/control_plane_base.h"
#include "trial_runner/torch/adaptive_data_loader.h"
#include "trial_runner/torch/adaptive_data_parallel.h"
#include "trial_runner/torch/process/trial_context.h"
#include "trial_runner/torch/trial.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;

struct LinearModel {
  torch::nn::Linear net{4, 1};
  torch::optim::SGD optimizer{net->parameters(), 1e-3};
};

TEST(TrainingEngine, SaysOfEachModelThatIsNotOnItsSlotsDevice) {
  char name[] = "test";
  char* arguments[] = {name};
  Trial trial(1, arguments);
  LinearModel actor;
  LinearModel critic;
  testing::internal::CaptureStderr();
  const AdaptiveDataParallel first(trial, *actor.net, actor.optimizer, {.name = "actor"});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");

  trial.context().device = c10::Device(c10::kCUDA, 0);
  testing::internal::CaptureStderr();
  const AdaptiveDataParallel second(trial, *critic.net, critic.optimizer, {.name = "critic"});
  EXPECT_THAT(
      testing::internal::GetCapturedStderr(),
      AllOf(HasSubstr("espalier: AdaptiveDataParallel \"critic\": its parameters are on cpu"),
            HasSubstr("this replica has cuda:0")));
}

// In a process of its own each, that ends.
TEST(TrainingEngineDeathTest, MistakesEndTheProgramAndSayWhatIsWanted) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const ::testing::ExitedWithCode bad_use(2);
  char name[] = "test";
  char* arguments[] = {name};
  const auto step = [&](const std::function<at::Tensor(LinearModel&)>& loss_of) {
    Trial trial(1, arguments);
    LinearModel model;
    AdaptiveDataParallel parallel(trial, *model.net, model.optimizer, {});
    AdaptiveDataLoader loader(parallel, 8, {.batch_size = 8});
    loader.NextEpoch(1);
    loader.NextBatch();
    parallel.Step(loss_of(model));
  };
  EXPECT_EXIT(step([](LinearModel&) { return at::Tensor(); }), bad_use,
              "Step: the loss is undefined: want one number");
  EXPECT_EXIT(step([](LinearModel& model) {
                return model.net(at::ones({8, 4}));
              }),
              bad_use, "Step: the loss is of shape");
  EXPECT_EXIT(step([](LinearModel&) { return at::ones({}); }), bad_use,
              "Step: the loss is without a gradient");
  EXPECT_EXIT(
      {
        Trial trial(1, arguments);
        torch::nn::Linear net(4, 1);
        torch::optim::LBFGS optimizer(net->parameters());
        const AdaptiveDataParallel parallel(trial, *net, optimizer, {});
      },
      bad_use, "LBFGS runs backward as often as it likes");
  EXPECT_EXIT(step([](LinearModel& model) {
                torch::nn::Linear later(4, 1);
                model.optimizer.add_param_group({later->parameters()});
                return model.net(at::ones({8, 4})).mean();
              }),
              bad_use,
              "the optimizer has 4 parameters, and had 2 when AdaptiveDataParallel was made");
  EXPECT_EXIT(step([](LinearModel& model) {
                model.net->weight.register_hook([](const at::Tensor& g) { return g.clamp(-1, 1); });
                return model.net(at::ones({8, 4})).mean();
              }),
              bad_use, "parameter \"weight\" has a hook by register_hook");
  const auto set_batch_size = [&](std::int64_t batch_size, bool in_loop) {
    Trial trial(1, arguments);
    LinearModel model;
    AdaptiveDataParallel parallel(trial, *model.net, model.optimizer, {});
    AdaptiveDataLoader loader(parallel, 8, {.batch_size = 4});
    loader.NextEpoch(1);
    if (in_loop) loader.NextBatch();
    loader.SetBatchSize(batch_size);
  };
  EXPECT_EXIT(set_batch_size(8, true), bad_use,
              "the batch size was set to 8 within an epoch, where it is 4");
  EXPECT_EXIT(set_batch_size(9, false), bad_use,
              "batch_size is 9: want at most the size of the data set, 8");
  EXPECT_EXIT(Trial(1, arguments).Report(-1, 0.5), bad_use, "Report: step is -1: want 0 or more");
  EXPECT_EXIT(Trial(1, arguments).Report((std::int64_t{1} << 53) + 1, 0.5), bad_use,
              "Report: step is 9007199254740993: want at most 2.53");
  EXPECT_EXIT(
      {
        const Trial first(1, arguments);
        setenv("ESPALIER_CONTROL_FD", "3", 1);
        const Trial second(1, arguments);
      },
      bad_use, "there is a Trial in this process already");
}

// A group of one from the first Ready on, which keeps the first progress that tells of times.
class ListeningPlane final : public ControlPlaneBase {
 public:
  explicit ListeningPlane(ReplicaId self) : self_(self) {}

  void Send(const ReplicaMessage& message) override {
    if (const auto* ready = std::get_if<ReplicaReady>(&message)) {
      Announce({1, {{self_, NodeId(1), ready->address}}, false});
    } else if (const auto* told = std::get_if<ReplicaProgress>(&message)) {
      const std::lock_guard lock(mutex_);
      if (!progress_told_ && !told->profile.empty()) progress_told_ = *told;
    }
  }
  std::optional<Adopted> Park(std::int64_t) override { return std::nullopt; }

  std::optional<ReplicaProgress> told() {
    const std::lock_guard lock(mutex_);
    return progress_told_;
  }

 private:
  const ReplicaId self_;
  std::mutex mutex_;
  std::optional<ReplicaProgress> progress_told_;
};

// Steps of two microbatches, and at each epoch's end one of a single one, which does not count in
// the profile: a time that went to another step than its own would show.
TEST(TrainingEngine, TellsWhatADeviceTookWithTheShapeOfTheStep) {
  char name[] = "test";
  char* arguments[] = {name};
  Trial trial(1, arguments);
  auto plane = std::make_unique<ListeningPlane>(trial.context().replica);
  ListeningPlane& heard = *plane;
  trial.context().control = std::move(plane);
  trial.context().step_timer = [] { return std::make_unique<LateTimer>(); };
  LinearModel model;
  AdaptiveDataParallel parallel(trial, *model.net, model.optimizer, {.base_batch_size = 4});
  AdaptiveDataLoader loader(parallel, 25, {.batch_size = 8});
  while (!heard.told() && loader.NextEpoch(1'000'000'000)) {
    while (const auto indices = loader.NextBatch()) {
      parallel.Step(model.net->forward(at::ones({indices->numel(), 4})).pow(2).mean());
    }
  }

  const std::optional<ReplicaProgress> told = heard.told();
  ASSERT_TRUE(told.has_value());
  ASSERT_EQ(told->profile.size(), 1U);
  const ProfileEntry& entry = told->profile.front();
  EXPECT_EQ(entry.key, (ProfileKey{1, 1, 4}));
  const auto steps = static_cast<double>(entry.optimizer_count);
  EXPECT_GT(steps, 0);
  EXPECT_EQ(entry.accumulation_count, entry.optimizer_count);
  // By the timer's clock, see DeviceStepTimes' test.
  EXPECT_EQ(entry.accumulation_time_s, 2 * steps);
  EXPECT_EQ(entry.optimizer_time_s, 6 * steps);
  EXPECT_EQ(entry.sync_time_s, steps);
  // What was known of the device, a step or two late: 5 s a step, and 3 s of the short ones.
  ASSERT_EQ(told->replica_times.size(), 1U);
  const ReplicaTime& time = told->replica_times.front();
  EXPECT_LE(time.compute_time_s, 5.0 * static_cast<double>(time.steps));
  EXPECT_GE(time.compute_time_s, 3.0 * static_cast<double>(time.steps - 2));
}

}  // namespace
}  // namespace espalier
