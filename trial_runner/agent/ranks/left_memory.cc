#include "trial_runner/agent/ranks/left_memory.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/folder_entries.h"

namespace espalier {

void RemoveLeftMemory(const std::string& folder, uid_t user, const std::string& address, int port) {
  const std::string prefix =
      absl::StrCat("deepspeed_allreduce_buffer_", user, "_", address, "_", port, "_");
  std::error_code error;
  for (const auto& entry : FolderEntries(folder, error)) {
    if (!entry.path().filename().string().starts_with(prefix)) continue;
    std::filesystem::remove(entry.path(), error);
  }
}

}  // namespace espalier
