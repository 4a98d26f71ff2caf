#include "trial_runner/agent/processes/out_of_memory.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"

namespace espalier {
namespace {

TEST(OutOfMemory, SaysSoWhereTheGroupHasLostOneMore) {
  std::string name = (std::filesystem::temp_directory_path() / "memory-XXXXXX").string();
  const std::string root = mkdtemp(name.data());
  std::filesystem::create_directories(root + "/proc/self");
  std::filesystem::create_directories(root + "/groups/job");
  std::ofstream(root + "/proc/self/cgroup") << "0::/job\n";
  std::ofstream(root + "/proc/self/mountinfo") << "30 23 0:26 / /groups rw - cgroup2 cgroup2 rw\n";
  const auto count = [&](int kills) {
    std::ofstream(root + "/groups/job/memory.events") << "oom " << kills << "\noom_kill " << kills;
  };
  count(3);
  OutOfMemory memory{ControlGroups(root)};
  EXPECT_EQ(memory.WhyKilled(), "") << "those were others";
  count(4);
  EXPECT_EQ(memory.WhyKilled(), "was killed: out of memory");
  EXPECT_EQ(memory.WhyKilled(), "");
  std::ofstream(root + "/groups/memory.max") << "796917760\n";
  count(6);
  EXPECT_EQ(memory.WhyKilled(), "was killed: out of memory (limit 760 MB)");
  std::filesystem::remove_all(root);
}

TEST(OutOfMemory, SparesAreKilledFirst) {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  const auto score = [&] {
    int read = 0;
    std::ifstream(absl::StrCat("/proc/", child, "/oom_score_adj")) >> read;
    return read;
  };
  const int usual = score();
  KillFirst(child, true);
  EXPECT_EQ(score(), 1000);
  KillFirst(child, false);
  EXPECT_EQ(score(), usual);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace espalier
