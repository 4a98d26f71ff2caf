#include "tuner/cli/machine/machine.h"

#include <filesystem>
#include <system_error>

#include "base/machine_limits.h"

namespace espalier {

std::int64_t SpareMemoryBytes() {
  constexpr std::int64_t kShare = 8;
  return UsableMemory_bytes() / kShare;
}

std::string OwnExecutable() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).string();
}

}  // namespace espalier
