#include "base/free_disk.h"

#include <sys/statvfs.h>

#include <limits>

namespace espalier {

std::optional<std::int64_t> FreeDiskBytes(const std::string& folder) {
  struct statvfs disk {};
  if (statvfs(folder.c_str(), &disk) != 0) return std::nullopt;
  // Some file systems that have no limit say that they have more than fits.
  const double bytes = static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize);
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  return bytes < 0x1p62 ? static_cast<std::int64_t>(disk.f_bavail * disk.f_frsize) : kMost;
}

}  // namespace espalier
