#include "tuner/server/optuna/optuna_samplers.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;

// In place of Python: a program that ends once the test lets go of a lock.
class HeldProgram {
 public:
  HeldProgram() : lock_(::open(Path("lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600)) {
    EXPECT_EQ(::flock(lock_, LOCK_EX), 0);
    std::ofstream(Path("python")) << "#!/bin/sh\nexec flock -s " << Path("lock") << " true\n";
    std::filesystem::permissions(Path("python"), std::filesystem::perms::owner_all);
  }
  ~HeldProgram() { ::close(lock_); }
  HeldProgram(const HeldProgram&) = delete;
  HeldProgram& operator=(const HeldProgram&) = delete;

  void LetGo() const { ::flock(lock_, LOCK_UN); }
  static std::string Path(const std::string& name) {
    return ::testing::TempDir() + "/held_program_" + std::to_string(::getpid()) + "_" + name;
  }

 private:
  const int lock_;
};

TEST(OptunaSamplers, AreCheckedForSoManyNewStudiesAtATime) {
  const HeldProgram program;
  OptunaSamplers samplers({.python = HeldProgram::Path("python"), .hubs = {}});
  StudySpec spec;
  spec.name = "mnist";
  spec.sampler.name = "optuna";
  std::mutex mutex;
  std::vector<absl::Status> refused, unknown;
  std::vector<std::thread> calls;
  for (int i = 0; i < kMostChecked + 3; ++i) {
    calls.emplace_back([&] {
      const absl::StatusOr<std::string> checked = samplers.Check(spec);
      const std::lock_guard lock(mutex);
      (checked.ok() ? unknown : refused).push_back(checked.status());
      if (refused.size() == 3) program.LetGo();  // the others wait
    });
  }
  for (std::thread& call : calls) call.join();
  ASSERT_EQ(refused.size(), 3);
  EXPECT_EQ(unknown.size(), kMostChecked);
  EXPECT_TRUE(absl::IsResourceExhausted(refused.front())) << refused.front();
  EXPECT_THAT(std::string(refused.front().message()),
              HasSubstr("busy: the samplers of 16 new studies are being checked"));
  EXPECT_TRUE(samplers.Check(spec).ok()) << "there is room again";
}

}  // namespace
}  // namespace espalier
