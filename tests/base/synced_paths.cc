#include "tests/base/synced_paths.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <mutex>
#include <utility>

namespace espalier {
namespace {

std::mutex synced_mutex;
std::set<std::string> synced_paths;

}  // namespace

std::set<std::string> TakeSyncedPaths() {
  const std::lock_guard lock(synced_mutex);
  return std::exchange(synced_paths, {});
}

}  // namespace espalier

extern "C" int fsync(int file) {
  std::array<char, 4096> path{};
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  const ssize_t size = readlink(link.c_str(), path.data(), path.size());
  if (size > 0) {
    const std::lock_guard lock(espalier::synced_mutex);
    espalier::synced_paths.emplace(path.data(), static_cast<std::size_t>(size));
  }
  return static_cast<int>(syscall(SYS_fsync, file));
}
