#include "trial_runner/torch/device.h"

#include <cstdlib>
#include <map>
#include <optional>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trial_runner/collectives/cuda_library.h"
#include "trial_runner/torch/device_step_times.h"
#include "tuner/base/protocol.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;

// Sets a variable of the environment for a test's time.
class Setting {
 public:
  Setting(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    setenv(name, value, 1);
  }
  ~Setting() {
    if (before_) {
      setenv(name_, before_->c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  const char* const name_;
  std::optional<std::string> before_;
};

TEST(AssignedDevice, IsTheCpuWhereNoGpuIsNamed) {
  for (const char* named : {"", "-1"}) {
    const Setting visible("CUDA_VISIBLE_DEVICES", named);
    const auto device = AssignedDevice();
    ASSERT_TRUE(device.ok()) << device.status();
    EXPECT_TRUE(device->is_cpu());
  }
}

TEST(AssignedDevice, NamedGpuIsUsedOrTheErrorNamesIt) {
  const Setting visible("CUDA_VISIBLE_DEVICES", "0");
  const auto device = AssignedDevice();
  if (!BuiltWithCuda()) {
    EXPECT_TRUE(device.ok() && device->is_cpu());
  } else if (device.ok()) {
    EXPECT_TRUE(device->is_cuda());
    EXPECT_GE(AllocatedBytes(*device), 0);
    EmptyCache(*device);  // also where nothing was allocated yet
  } else {
    EXPECT_THAT(std::string(device.status().message()), HasSubstr("CUDA_VISIBLE_DEVICES=\"0\""));
  }
}

TEST(EndIfSlotIsAtFault, EndsReplicasOfAgentsAlone) {
  const absl::Status broken = absl::UnavailableError("no CUDA-capable device is detected");
  EndIfSlotIsAtFault(broken);
  const Setting slot("ESPALIER_CONTROL_FD", "3");
  EndIfSlotIsAtFault(absl::OkStatus());
  EXPECT_EXIT(EndIfSlotIsAtFault(broken), ::testing::ExitedWithCode(kSlotAtFaultExitCode),
              "no CUDA-capable device is detected");
}

TEST(MisplacedModel, IsNamedWithWhatMendsIt) {
  const c10::Device gpu(c10::kCUDA, 0);
  EXPECT_EQ(MisplacedModel("net", gpu, gpu), std::nullopt);
  EXPECT_EQ(MisplacedModel("net", c10::kCPU, c10::kCPU), std::nullopt);
  const auto told = MisplacedModel("AdaptiveDataParallel \"critic\"", c10::kCPU, gpu);
  ASSERT_TRUE(told.has_value());
  EXPECT_THAT(*told, AllOf(HasSubstr("\"critic\": its parameters are on cpu"),
                           HasSubstr("this replica has cuda:0"), HasSubstr("to(trial.device())")));
  EXPECT_TRUE(MisplacedModel("net", gpu, c10::kCPU).has_value());
}

TEST(AssignedDevice, MemoryShareThatIsNoneIsRefused) {
  for (const char* share : {"0", "1.5", "-0.5", "half", "nan"}) {
    const Setting bad("ESPALIER_GPU_MEMORY_SHARE", share);
    const auto device = AssignedDevice();
    ASSERT_FALSE(device.ok()) << share;
    EXPECT_THAT(std::string(device.status().message()), HasSubstr("at most 1"));
  }
}

TEST(AllocatedBytes, AreNotCountedOnTheCpu) { EXPECT_EQ(AllocatedBytes(c10::kCPU), 0); }

TEST(StepTimer, OnTheCpuTellsEachStepAtItsEndAndAddsUpStretches) {
  const auto timer = StepTimer::For(c10::kCPU);
  timer->Begin(StepTimer::Part::kCompute);
  timer->End(StepTimer::Part::kCompute);
  const auto once = timer->EndStep();
  ASSERT_EQ(once.size(), 1U);
  EXPECT_GT(once[0].compute_s, 0);
  EXPECT_EQ(once[0].sync_s, 0);
  timer->Begin(StepTimer::Part::kSync);
  timer->End(StepTimer::Part::kSync);
  const auto next = timer->EndStep();
  ASSERT_EQ(next.size(), 1U);
  EXPECT_EQ(next[0].compute_s, 0);
  EXPECT_GT(next[0].sync_s, 0);
  timer->Begin(StepTimer::Part::kSync);
  timer->End(StepTimer::Part::kSync);
  timer->Reset();
  EXPECT_EQ(timer->EndStep().at(0).sync_s, 0) << "of a step that came to nothing";
}

// A device that is a step behind. Each look at its clock is a second later than the one before.
class LateTimer final : public StepTimer {
 public:
  void Begin(Part part) override { began_[part] = now_s_++; }
  void End(Part part) override {
    const double took_s = now_s_++ - began_.at(part);
    if (part == Part::kCompute) times_.compute_s += took_s;
    if (part == Part::kSync) times_.sync_s += took_s;
    if (part == Part::kAccumulation) times_.accumulation_s += took_s;
    if (part == Part::kLastMicrobatch) times_.last_microbatch_s += took_s;
  }
  std::vector<Times> EndStep() override {
    std::vector<Times> passed;
    if (last_) passed.push_back(*last_);
    last_ = std::exchange(times_, {});
    return passed;
  }
  void Reset() override {
    times_ = {};
    last_.reset();
  }

 private:
  double now_s_ = 0;
  std::map<Part, double> began_;
  Times times_;
  std::optional<Times> last_;
};

TEST(DeviceStepTimes, AreToldAStepLateWithTheShapeOfTheirStep) {
  DeviceStepTimes times(std::make_unique<LateTimer>());
  const auto step = [&times](int microbatches, std::int64_t atomic) {
    for (int i = 1; i < microbatches; ++i) {
      times.BeginMicrobatch(/*last=*/false);
      times.EndMicrobatch();
    }
    times.BeginMicrobatch(/*last=*/true);
    times.BeginSync();
    times.EndSync();
    DeviceStepTimes::Step ended{.shape = {1, 2, atomic}, .usual = true};
    ended.times.accumulation_count = microbatches - 1;
    return times.EndStep(ended);
  };
  EXPECT_TRUE(step(3, 16).empty()) << "the device is not through with it";
  const auto first = step(1, 32);
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0].shape, (ProfileKey{1, 2, 16}));
  EXPECT_EQ(first[0].times.accumulation_count, 2);
  EXPECT_EQ(first[0].times.accumulation_time_s, 2 * 2);
  EXPECT_EQ(first[0].times.sync_time_s, 1);
  EXPECT_EQ(first[0].times.optimizer_time_s, 6);
  EXPECT_EQ(first[0].compute_s, 2 * 2 + 2 + 1);
  const auto second = step(1, 64);
  ASSERT_EQ(second.size(), 1U);
  EXPECT_EQ(second[0].shape, (ProfileKey{1, 2, 32}));
  EXPECT_EQ(second[0].times.accumulation_time_s, 0);

  times.BeginMicrobatch(/*last=*/false);  // and the group is lost
  times.Reset();
  EXPECT_TRUE(step(1, 128).empty()) << "nobody asks about those before";
  EXPECT_EQ(step(1, 128).at(0).times.accumulation_time_s, 0);
}

}  // namespace
}  // namespace espalier
