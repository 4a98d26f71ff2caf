#include "trial_runner/agent/gpus/gpus.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <mutex>
#include <set>
#include <stdexcept>

#include "trial_runner/agent/gpus/gpu_watch.h"
#include "trial_runner/agent/trial_environment.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kTwoGpus = "Tester 3000|GPU-aaaa|8589934592\nTester 3000|GPU-bbbb|8589934592\n";

// A machine whose driver is the stand-in library.
class Gpus : public ::testing::Test {
 protected:
  Gpus() {
    std::string name = (std::filesystem::temp_directory_path() / "gpus-XXXXXX").string();
    file_ = mkdtemp(name.data());
    file_ /= "gpus";
    setenv("ESPALIER_NVML", FAKE_NVML, 1);
    Have(kTwoGpus);
    setenv("FAKE_NVML_GPUS", file_.c_str(), 1);
  }
  ~Gpus() override {
    unsetenv("ESPALIER_NVML");
    unsetenv("FAKE_NVML_GPUS");
    std::filesystem::remove_all(file_.parent_path());
  }

  // At once: a watch looks when it likes.
  void Have(const std::string& gpus) const {
    std::ofstream(file_.string() + ".new") << gpus;
    std::filesystem::rename(file_.string() + ".new", file_);
  }

  static std::vector<Gpu> Look() {
    const auto driver = GpuDriver::Open();
    EXPECT_TRUE(driver.ok() && *driver != nullptr) << driver.status();
    const auto gpus = (*driver)->Look();
    EXPECT_TRUE(gpus.ok()) << gpus.status();
    return *gpus;
  }

  std::filesystem::path file_;
};

// What is true of any driver's GPUs.
void ExpectSound(const std::vector<Gpu>& gpus) {
  std::set<std::string> uuids;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    EXPECT_EQ(gpus[i].index, static_cast<int>(i));
    if (!gpus[i].trouble.empty()) continue;
    EXPECT_NE(gpus[i].name, "");
    EXPECT_TRUE(gpus[i].uuid.starts_with("GPU-") || gpus[i].uuid.starts_with("MIG-"));
    EXPECT_TRUE(gpus[i].memory_bytes == 0 || gpus[i].memory_bytes > std::int64_t{1} << 30);
    EXPECT_TRUE(uuids.insert(gpus[i].uuid).second) << gpus[i].uuid << " twice";
  }
}

TEST_F(Gpus, AreNamedWithTheirMemory) {
  const std::vector<Gpu> gpus = Look();
  ASSERT_EQ(gpus.size(), 2U);
  const Gpu second{.index = 1,
                   .name = "Tester 3000",
                   .uuid = "GPU-bbbb",
                   .memory_bytes = std::int64_t{8} << 30,
                   .trouble = "",
                   .cuda_index = 1};
  EXPECT_EQ(gpus[1], second);
  ExpectSound(gpus);
}

TEST_F(Gpus, OneInTroubleSaysSoAndTheOthersWork) {
  Have("lost\n" + kTwoGpus);
  const std::vector<Gpu> gpus = Look();
  ASSERT_EQ(gpus.size(), 3U);
  EXPECT_EQ(gpus[0].trouble, "GPU is lost");
  ExpectSound(gpus);
  EXPECT_EQ(ChooseGpus(gpus, "all")->size(), 2U);
  EXPECT_EQ(ChooseGpus(gpus, "0").status().message(), "GPU 0: GPU is lost");
}

TEST_F(Gpus, OneThatHasToBeResetOrReplacedIsInTroubleThoughItAnswers) {
  Have(
      "Tester|GPU-aaaa|8589934592 action=1\nTester|GPU-bbbb|8589934592 rows=pending\n"
      "Tester|GPU-cccc|8589934592 rows=failed\nTester|GPU-dddd|8589934592 action=0 rows=none\n");
  const std::vector<Gpu> gpus = Look();
  ASSERT_EQ(gpus.size(), 4U);
  EXPECT_EQ(gpus[0].trouble, "the driver says that it has to be reset");
  EXPECT_EQ(gpus[1].trouble, "a broken row of its memory is replaced once it is reset");
  EXPECT_EQ(gpus[2].trouble, "a broken row of its memory has no replacement");
  EXPECT_EQ(gpus[3].trouble, "");
}

TEST_F(Gpus, TellWhichCpusAreNear) {
  Have("Tester|GPU-aaaa|8589934592 cpus=10\n" + kTwoGpus);
  const std::vector<Gpu> gpus = Look();
  EXPECT_EQ(gpus[0].near_cpus, (std::vector<int>{1, 3}));
  EXPECT_THAT(gpus[1].near_cpus, IsEmpty());
}

TEST(GpuWatchTimes, AreEnoughForEightGpusThatAreInitialisedAnew) {
  EXPECT_GE(GpuWatch::Times{}.limit, 8 * std::chrono::seconds(3));
}

TEST_F(Gpus, InstancesOfADividedGpuAreGpusOfTheirOwn) {
  Have("divided\n+Tester MIG 3g|MIG-1111|4294967296\n+Tester MIG 4g|MIG-2222|4294967296\n" +
       kTwoGpus);
  const std::vector<Gpu> gpus = Look();
  ASSERT_EQ(gpus.size(), 4U);
  EXPECT_EQ(gpus[1], (Gpu{1, "Tester MIG 4g", "MIG-2222", std::int64_t{4} << 30, ""}));
  EXPECT_EQ(gpus[2].uuid, "GPU-aaaa");
  ExpectSound(gpus);
  EXPECT_EQ(VisibleGpus(gpus, "MIG-22"), std::vector<Gpu>{gpus[1]});
}

TEST_F(Gpus, OneThatSharesTheHostsMemoryTellsNoneOfItsOwn) {
  Have("Tester GB|GPU-cccc|unsupported\n");
  const std::vector<Gpu> gpus = Look();
  ASSERT_EQ(gpus.size(), 1U);
  EXPECT_EQ(gpus[0].name, "Tester GB");
  EXPECT_EQ(gpus[0].memory_bytes, 0);
  EXPECT_EQ(gpus[0].trouble, "");
}

TEST_F(Gpus, TheDriverIsHeldOnlyWhileItIsLookedAt) {
  const auto driver = GpuDriver::Open();
  ASSERT_TRUE(driver.ok());
  void* library = dlopen(FAKE_NVML, RTLD_NOW);
  const auto holders = reinterpret_cast<int (*)()>(dlsym(library, "FakeNvmlHolders"));
  EXPECT_EQ(holders(), 0);
  EXPECT_EQ((*driver)->Look()->size(), 2U);
  EXPECT_EQ(holders(), 0) << "a GPU can be reset only while nobody holds it";
  dlclose(library);
}

TEST_F(Gpus, ADriverThatHangsIsTroubleAndHoldsNobodyUp) {
  std::mutex mutex;
  std::condition_variable heard;
  std::string trouble;
  const std::vector<Gpu> gpus = Look();
  Have("hang\n");
  {
    const GpuWatch watch(
        *GpuDriver::Open(), gpus,
        {.period = std::chrono::milliseconds(1), .limit = std::chrono::milliseconds(50)},
        [&](const Gpu& gpu) {
          const std::lock_guard lock(mutex);
          trouble = gpu.trouble;
          heard.notify_all();
        });
    std::unique_lock lock(mutex);
    ASSERT_TRUE(heard.wait_for(lock, std::chrono::minutes(1), [&] { return !trouble.empty(); }));
    EXPECT_THAT(trouble, HasSubstr("does not answer"));
  }
  Have(kTwoGpus);  // lets go of who is left in there
}

TEST_F(Gpus, NoDriverIsNoGpu) {
  unsetenv("FAKE_NVML_GPUS");
  EXPECT_EQ(*GpuDriver::Open(), nullptr) << "its library is there, but it is not loaded";
  setenv("ESPALIER_NVML", "/does/not/exist.so", 1);
  EXPECT_EQ(*GpuDriver::Open(), nullptr);
}

TEST_F(Gpus, ThoseWithoutTheDriversLibraryAreSaid) {
  const std::filesystem::path device = file_.parent_path() / "nvidia0";
  std::ofstream(device).put('0');
  const auto said = [](const std::string& first_gpu) {
    testing::internal::CaptureStderr();
    const auto gpus = FindGpus(first_gpu);
    EXPECT_TRUE(gpus.ok() && gpus->empty()) << gpus.status();
    return testing::internal::GetCapturedStderr();
  };
  setenv("ESPALIER_NVML", "/does/not/exist.so", 1);
  EXPECT_THAT(said(device), AllOf(HasSubstr("there is " + device.string()),
                                  HasSubstr("/does/not/exist.so is not found or not loaded")));
  EXPECT_EQ(said(device.string() + "-that-is-not-there"), "");

  setenv("ESPALIER_NVML", FAKE_NVML, 1);
  Have(kTwoGpus);
  testing::internal::CaptureStderr();
  EXPECT_EQ(FindGpus(device)->size(), 2U);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(Gpus, ALibraryThatIsNotNvmlIsNamed) {
  setenv("ESPALIER_NVML", "libm.so.6", 1);
  EXPECT_THAT(std::string(GpuDriver::Open().status().message()),
              HasSubstr("libm.so.6 has no nvmlInit_v2"));
}

// The real library keeps the same contract: on a machine without GPUs it says that there are none.
TEST(RealGpus, AreSoundOrAbsent) {
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  const auto driver = GpuDriver::Open();
  ASSERT_TRUE(driver.ok()) << driver.status();
  EXPECT_TRUE(library != nullptr || *driver == nullptr);
  if (*driver == nullptr) return;
  const auto gpus = (*driver)->Look();
  ASSERT_TRUE(gpus.ok()) << gpus.status();
  ExpectSound(*gpus);
}

TEST_F(Gpus, AreChosenByIndex) {
  const std::vector<Gpu> gpus = Look();
  EXPECT_EQ(*ChooseGpus(gpus, "all"), gpus);
  EXPECT_THAT(*ChooseGpus(gpus, "none"), IsEmpty());
  EXPECT_EQ(ChooseGpus(gpus, "1, 0")->front(), gpus[1]);
  const auto error = [&](const char* asked) {
    return std::string(ChooseGpus(gpus, asked).status().message());
  };
  EXPECT_EQ(error("2"), "there is no GPU 2: this machine has 0, 1");
  EXPECT_EQ(error("0,0"), "GPU 0 is named twice");
  EXPECT_EQ(error("first"), "\"first\": must be all, none, or indices of GPUs like 0,2");
  EXPECT_EQ(error(""), "\"\": must be all, none, or indices of GPUs like 0,2");
  EXPECT_EQ(ChooseGpus({}, "0").status().message(), "there is no GPU 0: this machine has none");
}

TEST_F(Gpus, AreVisibleAsCudaHasIt) {
  const std::vector<Gpu> gpus = Look();
  EXPECT_THAT(VisibleGpus(gpus, ""), IsEmpty());
  EXPECT_THAT(VisibleGpus(gpus, "-1"), IsEmpty());
  EXPECT_EQ(VisibleGpus(gpus, "1,0").size(), 2U);
  EXPECT_EQ(VisibleGpus(gpus, "GPU-bb"), std::vector<Gpu>{gpus[1]});
  EXPECT_EQ(VisibleGpus(gpus, "0,7,1"), std::vector<Gpu>{gpus[0]})
      << "an unknown one ends the list";
}

TEST_F(Gpus, AreGivenToReplicasBySlot) {
  AgentOptions options;
  options.gpus = Look();
  options.slots_per_gpu = 2;
  options.slots = 4;
  options.hide_gpus = true;
  v1::StartReplica start;
  start.set_parameters_json("{}");
  const auto variable = [&](int slot, const std::string& name) -> std::string {
    start.set_slot(slot);
    const auto variables =
        *TrialEnvironment({{"CUDA_VISIBLE_DEVICES", "0,1"}}, options, {}, 1, {}, start, {});
    return variables.contains(name) ? variables.at(name) : "none";
  };
  EXPECT_EQ(variable(0, "CUDA_VISIBLE_DEVICES"), "GPU-aaaa");
  EXPECT_EQ(variable(1, "CUDA_VISIBLE_DEVICES"), "GPU-bbbb");
  EXPECT_EQ(variable(2, "CUDA_VISIBLE_DEVICES"), "GPU-aaaa");
  EXPECT_EQ(variable(2, "ESPALIER_GPU_MEMORY_SHARE"), "0.375") << "of 8 GiB less one for each";
  options.gpus[0].memory_bytes = 0;
  EXPECT_EQ(variable(0, "ESPALIER_GPU_MEMORY_SHARE"), "0.5") << "it is not known";
  options.slots_per_gpu = 1;
  EXPECT_EQ(variable(1, "ESPALIER_GPU_MEMORY_SHARE"), "none") << "it has a GPU of its own";
  options.gpus.clear();
  EXPECT_EQ(variable(0, "CUDA_VISIBLE_DEVICES"), "") << "a CPU slot of a machine with GPUs";
  options.hide_gpus = false;
  EXPECT_EQ(variable(0, "CUDA_VISIBLE_DEVICES"), "0,1");
}

TEST_F(Gpus, AFirstProcessSeesThoseOfAllItsSlots) {
  AgentOptions options;
  options.gpus = Look();
  std::swap(options.gpus[0], options.gpus[1]);  // slot 0 is on the second
  options.slots_per_gpu = 2;
  options.slots = 4;
  v1::StartReplica start;
  start.set_parameters_json("{}");
  start.add_command("train");
  start.set_slot(2);
  start.add_more_slots(1);
  start.add_more_slots(3);  // on the same one
  const auto of = [&] { return *TrialEnvironment({}, options, {}, 1, {}, start, {}); };
  EXPECT_EQ(of().at("CUDA_VISIBLE_DEVICES"), "GPU-bbbb,GPU-aaaa") << "its own first, each once";
  EXPECT_EQ(of().at("ESPALIER_OWN_GPU"), "GPU-bbbb");
  EXPECT_EQ(of().at("PYTORCH_NVML_BASED_CUDA_CHECK"), "1");
  EXPECT_FALSE(of().contains("CUDA_DEVICE_ORDER"));
  // DeepSpeed takes numbers alone, which must be CUDA's.
  start.set_command(0, "deepspeed");
  EXPECT_EQ(of().at("CUDA_VISIBLE_DEVICES"), "1,0");
  EXPECT_EQ(of().at("CUDA_DEVICE_ORDER"), "PCI_BUS_ID");
  EXPECT_EQ(of().at("ESPALIER_OWN_GPU"), "GPU-bbbb");
  options.gpus[0].cuda_index = -1;
  EXPECT_EQ(of().at("CUDA_VISIBLE_DEVICES"), "GPU-bbbb,GPU-aaaa");
  start.clear_more_slots();
  EXPECT_EQ(of().at("CUDA_VISIBLE_DEVICES"), "GPU-bbbb");
  EXPECT_FALSE(of().contains("ESPALIER_OWN_GPU"));
}

TEST_F(Gpus, AreCountedAsCudaDoesWhereNoneIsDividedOrSilent) {
  for (const Gpu& gpu : Look()) EXPECT_EQ(gpu.cuda_index, gpu.index);
  Have(kTwoGpus + "lost\n");
  for (const Gpu& gpu : Look()) EXPECT_EQ(gpu.cuda_index, -1) << "CUDA may leave out the lost one";
}

TEST_F(Gpus, CpusNearSeveralAreThoseNearAny) {
  Gpu one;
  Gpu two;
  one.near_cpus = {1, 3};
  two.near_cpus = {0, 3};
  EXPECT_EQ(CpusNear({&one, &two}), (std::vector<int>{0, 1, 3}));
  two.near_cpus.clear();
  EXPECT_THAT(CpusNear({&one, &two}), IsEmpty()) << "it may be near to others";
  EXPECT_THAT(CpusNear({}), IsEmpty());
}

TEST_F(Gpus, TheirTroublesAreToldOnce) {
  std::mutex mutex;
  std::condition_variable heard;
  std::vector<std::string> troubles;
  const std::vector<Gpu> gpus = Look();
  const GpuWatch watch(*GpuDriver::Open(), gpus, {.period = std::chrono::milliseconds(1)},
                       [&](const Gpu& gpu) {
                         const std::lock_guard lock(mutex);
                         troubles.push_back(gpu.uuid + ":" + gpu.trouble);
                         heard.notify_all();
                       });
  const auto await = [&](std::size_t count) {
    std::unique_lock lock(mutex);
    return heard.wait_for(lock, std::chrono::minutes(1), [&] { return troubles.size() >= count; });
  };
  Have("Tester 3000|GPU-aaaa|8589934592\nlost\n");
  ASSERT_TRUE(await(1));
  Have(kTwoGpus);
  ASSERT_TRUE(await(2));
  const std::lock_guard lock(mutex);
  EXPECT_EQ(troubles, (std::vector<std::string>{"GPU-bbbb:GPU is lost", "GPU-bbbb:"}));
}

TEST_F(Gpus, ADriverThatThrowsIsTrouble) {
  class Broken final : public GpuDriver {
   public:
    absl::StatusOr<std::vector<Gpu>> Look() override { throw std::runtime_error("no symbol"); }
  };
  std::promise<std::string> trouble;
  const GpuWatch watch(
      std::make_unique<Broken>(), {Look().at(0)}, {},
      [&](const Gpu& gpu) { trouble.set_value(gpu.trouble); }, [](std::int64_t) {});
  EXPECT_EQ(trouble.get_future().get(), "a look at the GPUs: no symbol");
}

TEST_F(Gpus, OneThatIsGoneDoesNotMakeTheOthersStrangers) {
  std::mutex mutex;
  std::condition_variable heard;
  std::vector<std::string> troubles;
  std::int64_t looks = 0;
  GpuWatch watch(
      *GpuDriver::Open(), Look(), {},
      [&](const Gpu& gpu) {
        const std::lock_guard lock(mutex);
        troubles.push_back(gpu.uuid + ": " + gpu.trouble);
      },
      [&](std::int64_t look) {
        const std::lock_guard lock(mutex);
        looks = look;
        heard.notify_all();
      });
  Have("Tester 3000|GPU-bbbb|8589934592\n");
  const std::int64_t look = watch.LookNow();
  std::unique_lock lock(mutex);
  ASSERT_TRUE(heard.wait_for(lock, std::chrono::minutes(1), [&] { return looks >= look; }));
  EXPECT_EQ(troubles, std::vector<std::string>{"GPU-aaaa: is not there any more"});
}

}  // namespace
}  // namespace espalier
