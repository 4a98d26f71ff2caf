#include "tests/base/synced_paths.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <mutex>
#include <utility>

namespace espalier {
namespace {

std::mutex synced_mutex;
std::set<std::string> synced_paths;
std::string failing_path;
int syncs_before_failing = 0;

std::string PathOf(int file) {
  std::array<char, 4096> path{};
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  const ssize_t size = readlink(link.c_str(), path.data(), path.size());
  return {path.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
}

// Whether this call is to fail; then errno says why.
bool Fails(const std::string& path) {
  if (path.empty() || path != failing_path || syncs_before_failing-- > 0) return false;
  failing_path.clear();
  errno = EIO;
  return true;
}

}  // namespace

std::set<std::string> TakeSyncedPaths() {
  const std::lock_guard lock(synced_mutex);
  return std::exchange(synced_paths, {});
}

void FailSyncOf(const std::string& path, int later) {
  const std::lock_guard lock(synced_mutex);
  failing_path = path;
  syncs_before_failing = later;
}

bool SyncHasFailed() {
  const std::lock_guard lock(synced_mutex);
  return failing_path.empty();
}

}  // namespace espalier

extern "C" int fsync(int file) {
  const std::string path = espalier::PathOf(file);
  {
    const std::lock_guard lock(espalier::synced_mutex);
    if (espalier::Fails(path)) return -1;
    if (!path.empty()) espalier::synced_paths.insert(path);
  }
  return static_cast<int>(syscall(SYS_fsync, file));
}

extern "C" int fdatasync(int file) {
  const std::string path = espalier::PathOf(file);
  {
    const std::lock_guard lock(espalier::synced_mutex);
    if (espalier::Fails(path)) return -1;
  }
  return static_cast<int>(syscall(SYS_fdatasync, file));
}
