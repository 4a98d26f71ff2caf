#include "base/synced_folders.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>
#include <future>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/sync_path.h"

namespace espalier {
namespace {

// nullopt: it is no folder, or its file system does not say when it was made.
std::optional<std::string> IdentityOf(const std::string& folder) {
  struct statx status {};
  constexpr unsigned kWanted = STATX_INO | STATX_BTIME | STATX_TYPE;
  if (statx(AT_FDCWD, folder.c_str(), AT_SYMLINK_NOFOLLOW, kWanted, &status) != 0 ||
      (status.stx_mask & kWanted) != kWanted || !S_ISDIR(status.stx_mode)) {
    return std::nullopt;
  }
  return absl::StrCat(folder, " ", status.stx_dev_major, ":", status.stx_dev_minor, " ",
                      status.stx_ino, " ", status.stx_btime.tv_sec, ".", status.stx_btime.tv_nsec);
}

}  // namespace

int SyncedFolders::SyncAbove(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path below = fs::absolute(path, error).lexically_normal();
  if (error) return SyncFoldersAbove(path);
  if (!below.has_filename()) below = below.parent_path();  // "a/b/"
  struct Sync {
    std::optional<std::string> identity;  // of the folder whose entry in another is synced
    std::future<int> failed;
  };
  std::vector<Sync> syncs;
  for (; below != below.parent_path(); below = below.parent_path()) {
    // Looked at before: what takes its place meanwhile is another one.
    const std::optional<std::string> identity = IdentityOf(below.string());
    {
      const std::lock_guard lock(mutex_);
      if (identity && known_.contains(*identity)) continue;
    }
    // Side by side: a file system writes what several wait for at once.
    syncs.push_back({identity, std::async(SyncFolder, below.parent_path().string())});
  }
  std::vector<std::string> synced;
  int first_error = 0;
  for (Sync& sync : syncs) {
    const int failed = sync.failed.get();
    if (failed != 0 && first_error == 0) first_error = failed;
    if (failed == 0 && sync.identity) synced.push_back(*std::move(sync.identity));
  }
  const std::lock_guard lock(mutex_);
  if (known_.size() + synced.size() > kMost) known_.clear();
  known_.insert(synced.begin(), synced.end());
  return first_error;
}

}  // namespace espalier
