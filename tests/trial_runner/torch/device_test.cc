#include "trial_runner/torch/device.h"

#include <cstdlib>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trial_runner/collectives/cuda_library.h"
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
  ASSERT_TRUE(once.has_value());
  EXPECT_GT(once->compute_s, 0);
  EXPECT_EQ(once->sync_s, 0);
  timer->Begin(StepTimer::Part::kSync);
  timer->End(StepTimer::Part::kSync);
  const auto next = timer->EndStep();
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->compute_s, 0);
  EXPECT_GT(next->sync_s, 0);
}

}  // namespace
}  // namespace espalier
