#include "tuner/cli/machine/machine.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace espalier {
int CpuCores() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof(cores), &cores) == 0) return std::max(1, CPU_COUNT(&cores));
  return 1;
}

std::int64_t MemoryBytes() {
  const std::int64_t machine = std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  std::int64_t limit = 0;
  std::ifstream group("/sys/fs/cgroup/memory.max");  // "max" where there is no limit
  return group >> limit && limit > 0 ? std::min(machine, limit) : machine;
}

std::int64_t SpareMemoryBytes() {
  constexpr std::int64_t kShare = 8;
  return MemoryBytes() / kShare;
}

std::string OwnExecutable() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).string();
}

std::string HostName() {
  char name[HOST_NAME_MAX + 1] = {};
  return gethostname(name, sizeof(name) - 1) == 0 && name[0] != '\0' ? name : "node";
}

}  // namespace espalier
