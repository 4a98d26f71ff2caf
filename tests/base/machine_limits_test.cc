#include "base/machine_limits.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

namespace espalier {
namespace {

// A machine of files.
class ControlGroupsTest : public testing::Test {
 protected:
  ControlGroupsTest() {
    std::string name = (std::filesystem::temp_directory_path() / "groups-XXXXXX").string();
    root_ = mkdtemp(name.data());
  }
  ~ControlGroupsTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  void Unified(const std::string& group, const std::string& top = "/") {
    Write("/proc/self/cgroup", "0::" + group + "\n");
    Write("/proc/self/mountinfo",
          "23 1 8:1 / / rw - ext4 /dev/sda rw\n30 23 0:26 " + top +
              " /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
  }
  void Version1(const std::string& group) {
    Write("/proc/self/cgroup",
          "4:memory:" + group + "\n2:cpu,cpuacct:" + group + "\n0::/init.scope\n");
    Write("/proc/self/mountinfo",
          "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
          "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
          "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  }
  ControlGroups groups() const { return ControlGroups(root_); }

  std::string root_;
};

TEST_F(ControlGroupsTest, TakesTheLeastOfAllGroupsAround) {
  Unified("/slurm/job_7/step_0");
  Write("/sys/fs/cgroup/slurm/job_7/cpu.max", "250000 100000\n");
  Write("/sys/fs/cgroup/slurm/job_7/step_0/cpu.max", "max 100000\n");
  Write("/sys/fs/cgroup/slurm/job_7/memory.max", "796917760\n");
  Write("/sys/fs/cgroup/slurm/memory.max", "max\n");
  Write("/sys/fs/cgroup/slurm/job_7/step_0/memory.max", "1000000000\n");
  Write("/sys/fs/cgroup/slurm/job_7/step_0/memory.events", "low 0\nhigh 0\noom 3\noom_kill 2\n");
  EXPECT_EQ(groups().cpu_quota(), 2.5);
  EXPECT_EQ(groups().memory_bytes(), 796917760);
  EXPECT_EQ(groups().out_of_memory_kills(), 2);
  Write("/sys/fs/cgroup/slurm/job_7/step_0/memory.high", "500000000\n");
  EXPECT_EQ(groups().memory_bytes(), 500000000);
}

TEST_F(ControlGroupsTest, ReadsVersion1) {
  Version1("/docker/abc");
  Write("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "50000\n");
  Write("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us", "100000\n");
  Write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  Write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  Write("/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "796917760\n");
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  Write("/sys/fs/cgroup/memory/docker/abc/memory.oom_control",
        "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n");
  EXPECT_EQ(groups().cpu_quota(), 0.5);
  EXPECT_EQ(groups().memory_bytes(), 796917760);
  EXPECT_EQ(groups().out_of_memory_kills(), 5);
}

TEST_F(ControlGroupsTest, KnowsWhichPartOfTheTreeAContainerSees) {
  Unified("/kubepods/pod1/c1", "/kubepods/pod1/c1");
  Write("/sys/fs/cgroup/cpu.max", "100000 100000\n");
  EXPECT_EQ(groups().cpu_quota(), 1.0);
  Unified("/kubepods/pod1/c1/step", "/kubepods/pod1/c1");
  Write("/sys/fs/cgroup/step/cpu.max", "50000 100000\n");
  EXPECT_EQ(groups().cpu_quota(), 0.5);
  Unified("/../../elsewhere", "/");
  EXPECT_EQ(groups().cpu_quota(), 1.0) << "what can be seen of another part";
}

TEST_F(ControlGroupsTest, WithoutGroupsThereIsNoLimit) {
  EXPECT_EQ(groups().cpu_quota(), std::nullopt);
  EXPECT_EQ(groups().memory_bytes(), std::nullopt);
  Unified("/");
  EXPECT_EQ(groups().memory_bytes(), std::nullopt);
  EXPECT_EQ(groups().out_of_memory_kills(), std::nullopt);
  Write("/sys/fs/cgroup/memory.max", "nonsense\n");
  EXPECT_EQ(groups().memory_bytes(), std::nullopt);
}

TEST(MachineLimits, AreThoseOfThisProcess) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_GE(UsableCores(), 1);
  EXPECT_LE(UsableCores(), CPU_COUNT(&before));
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(UsableCores(), 1);
  sched_setaffinity(0, sizeof before, &before);
  EXPECT_GT(UsableMemory_bytes(), std::int64_t{1} << 20);
}

}  // namespace
}  // namespace espalier
