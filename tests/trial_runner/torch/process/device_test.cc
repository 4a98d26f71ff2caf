#include "trial_runner/torch/process/device.h"

#include <cstdlib>
#include <optional>

#include "base/protocol.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/trial_runner/torch/late_timer.h"
#include "tests/trial_runner/torch/test_device.h"
#include "trial_runner/collectives/cuda/cuda_library.h"
#include "trial_runner/torch/process/device_step_times.h"

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

// What the CUDA part was asked for, instead of CUDA.
struct FakeCuda {
  static inline int loads = 0;
  static inline double share = 0;
  static inline int devices = 1;

  static absl::StatusOr<const CudaLibrary*> Load() {
    static constexpr CudaLibrary kLibrary = {
        .make_collectives = nullptr,
        .limit_memory =
            [](int device, double limit) {
              EXPECT_EQ(device, 0);
              share = limit;
              return absl::OkStatus();
            },
        .device_count = []() -> absl::StatusOr<int> { return devices; },
        .gradient_kernel = nullptr};
    ++loads;
    return &kLibrary;
  }
};

// A program that is started by hand on a machine with a GPU.
DeviceFacts ByHand() {
  FakeCuda::loads = 0;
  FakeCuda::share = 0;
  return {.visible = std::nullopt,
          .in_slot = false,
          .has_driver = true,
          .built_with_cuda = true,
          .load = FakeCuda::Load,
          .libtorch_has_cuda = [] { return true; }};
}

TEST(AssignedDevice, IsTheFirstGpuOfADriverWhereNothingIsSet) {
  const auto device = AssignedDevice(ByHand());
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_EQ(*device, c10::Device(c10::kCUDA, 0));
  EXPECT_EQ(FakeCuda::share, 0) << "all of its memory";

  DeviceFacts without_driver = ByHand();
  without_driver.has_driver = false;
  EXPECT_TRUE(AssignedDevice(without_driver)->is_cpu());
  DeviceFacts hidden = ByHand();
  hidden.visible = "";
  EXPECT_TRUE(AssignedDevice(hidden)->is_cpu());
  EXPECT_EQ(FakeCuda::loads, 0) << "nothing of CUDA is loaded for the CPU";
}

TEST(AssignedDevice, InASlotIsTheCpuUnlessTheAgentNamesAGpu) {
  DeviceFacts facts = ByHand();
  facts.in_slot = true;
  EXPECT_TRUE(AssignedDevice(facts)->is_cpu()) << "its agent found no GPU, or is to use none";
  EXPECT_EQ(FakeCuda::loads, 0);

  facts.visible = "GPU-8f6d";
  const Setting share("ESPALIER_GPU_MEMORY_SHARE", "0.25");
  EXPECT_TRUE(AssignedDevice(facts)->is_cuda());
  EXPECT_EQ(FakeCuda::share, 0.25);
}

TEST(AssignedDevice, OfAProcessThatSeesSeveralGpusIsItsOwn) {
  const Setting all("CUDA_VISIBLE_DEVICES", "GPU-aa,GPU-bb");
  const Setting own("ESPALIER_OWN_GPU", "-1");  // none, as there may be none here
  EXPECT_TRUE(AssignedDevice()->is_cpu());
  EXPECT_STREQ(std::getenv("CUDA_VISIBLE_DEVICES"), "-1") << "for CUDA, and all that starts later";

  DeviceFacts facts = ByHand();
  facts.visible = facts.own = "GPU-aa";
  EXPECT_TRUE(AssignedDevice(facts)->is_cuda());
  FakeCuda::devices = 2;  // as CUDA still says where it was initialised before
  EXPECT_THAT(std::string(AssignedDevice(facts).status().message()),
              AllOf(HasSubstr("CUDA had been initialised before, with the 2 GPUs of all slots"),
                    HasSubstr("make the Trial before anything else uses CUDA")));
  facts.own = "";
  EXPECT_TRUE(AssignedDevice(facts)->is_cuda()) << "a program that is started by hand has them all";
  FakeCuda::devices = 1;
}

TEST(AssignedDevice, ATorchOfAnotherCudaIsRefusedWhereAGpuIsNamed) {
  DeviceFacts facts = ByHand();
  facts.load = []() -> absl::StatusOr<const CudaLibrary*> { return GpusFit(2, 10); };
  facts.visible = "0";
  EXPECT_EQ(AssignedDevice(facts).status().message(),
            "environment variable CUDA_VISIBLE_DEVICES=\"0\" names a GPU, but GPUs need torch 2.11 "
            "or newer, for "
            "CUDA 13: this is torch 2.10; to train on the CPU, set CUDA_VISIBLE_DEVICES to \"\"");
  facts.visible = "";
  EXPECT_TRUE(AssignedDevice(facts)->is_cpu());
  for (const int minor : {11, 12, 30}) EXPECT_TRUE(GpusFit(2, minor).ok());
  for (const int minor : {0, 9}) EXPECT_FALSE(GpusFit(2, minor).ok());
  EXPECT_TRUE(GpusFit(3, 0).ok());
}

TEST(AssignedDevice, ABuildWithoutCudaSaysThatAGpuIsLeftIdle) {
  DeviceFacts facts = ByHand();
  facts.built_with_cuda = false;
  for (const bool named : {false, true}) {
    if (named) facts.visible = "0";
    testing::internal::CaptureStderr();
    const auto device = AssignedDevice(facts);
    EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("this build is without CUDA"));
    EXPECT_TRUE(device.ok() && device->is_cpu());
  }
  facts.visible = "";
  testing::internal::CaptureStderr();
  EXPECT_TRUE(AssignedDevice(facts)->is_cpu());
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "nobody wanted one";
}

TEST(AssignedDevice, WhereLibTorchLookedTooEarlyTheErrorSaysWhatToDo) {
  DeviceFacts facts = ByHand();
  facts.libtorch_has_cuda = [] { return false; };
  EXPECT_THAT(std::string(AssignedDevice(facts).status().message()),
              AllOf(HasSubstr("the machine has an NVIDIA driver, but LibTorch had looked for CUDA"),
                    HasSubstr("make the Trial before anything else of LibTorch"),
                    HasSubstr("to train on the CPU, set CUDA_VISIBLE_DEVICES to \"\"")));
  facts.visible = "1";
  EXPECT_THAT(std::string(AssignedDevice(facts).status().message()),
              HasSubstr("CUDA_VISIBLE_DEVICES=\"1\" names a GPU, but LibTorch had looked"));
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

TEST(GradientKernelFor, IsWhereItCanRunAndNotTurnedOff) {
  EXPECT_EQ(GradientKernelFor(c10::kCPU), nullptr);
  const Setting visible("CUDA_VISIBLE_DEVICES", "0");
  const auto device = AssignedDevice();
  const bool has_gpu = device.ok() && device->is_cuda();
  const c10::Device gpu(c10::kCUDA, 0);
  EXPECT_EQ(GradientKernelFor(gpu) != nullptr, has_gpu);
  const Setting off("ESPALIER_GRADIENT_KERNEL", "off");
  EXPECT_EQ(GradientKernelFor(gpu), nullptr);
}

TEST(AllocatedBytes, AreCountedOnAGpuAlone) {
  const std::int64_t before = AllocatedBytes(TestDevice());
  const at::Tensor some = torch::zeros({1000}, TestDevice());
  const std::int64_t more = AllocatedBytes(TestDevice()) - before;
  if (TestDevice().is_cpu()) {
    EXPECT_EQ(more, 0);
  } else {
    EXPECT_GE(more, some.nbytes());
  }
}

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
