#pragma once

#include <set>
#include <string>

namespace espalier {

// The files and folders that this program has synced (fsync) since the last call, by their paths at
// that moment. synced_paths.cc stands in the place of the C library's call.
std::set<std::string> TakeSyncedPaths();

// The next call that syncs that file or folder (fsync or fdatasync), or the one so many later,
// fails with EIO, as on a bad disk.
void FailSyncOf(const std::string& path, int later = 0);
// Whether it has come.
bool SyncHasFailed();

}  // namespace espalier
