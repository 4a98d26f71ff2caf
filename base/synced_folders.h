#pragma once

#include <cstddef>
#include <mutex>
#include <set>
#include <string>

namespace espalier {

// Which names of folders are known to outlast a loss of power, because they were synced by way of
// this object: each costs a disk a flush, and where checkpoints are written every second most of
// what is above them has been there for long. A folder that is made anew, or moved, is another one.
// Any thread may call it.
class SyncedFolders {
 public:
  // As many as are remembered; beyond, all are synced again.
  static constexpr std::size_t kMost = 4096;

  // As SyncFoldersAbove(path), but for names of folders that this object has synced before.
  int SyncAbove(const std::string& path);

 private:
  std::mutex mutex_;
  std::set<std::string> known_;  // paths with what tells a folder from others of its name
};

}  // namespace espalier
