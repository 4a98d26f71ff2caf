#include "tuner/cli/machine.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

namespace espalier {
namespace {

int GpusOfDriver() {
  std::error_code error;
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/driver/nvidia/gpus", error)) {
    count += entry.is_directory(error);
  }
  return count;
}

int VisibleGpus() {
  const int present = GpusOfDriver();
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible == nullptr || present == 0) return present;
  const std::string_view list(visible);
  if (list.empty() || list == "-1") return 0;
  return std::min(present, 1 + static_cast<int>(std::count(list.begin(), list.end(), ',')));
}

}  // namespace

int DefaultSlots() {
  if (const int gpus = VisibleGpus(); gpus > 0) return gpus;
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

std::string OwnExecutable() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).string();
}

std::string HostName() {
  char name[HOST_NAME_MAX + 1] = {};
  return gethostname(name, sizeof(name) - 1) == 0 && name[0] != '\0' ? name : "node";
}

}  // namespace espalier
