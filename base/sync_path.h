#pragma once

#include <string>

namespace espalier {

// Waits until what a file holds, or the names in a folder, would outlast a loss of power. 0, or the
// system's error.
int SyncPath(const std::string& path);

// The same for the names in all folders above `path`: of some file systems a new file is only found
// again if the folders that were made for it were synced, too. Those that this user cannot read,
// that are not there, or that cannot be synced at all are left out: they are not of its making. 0,
// or the error of the first one that could not be synced.
int SyncFoldersAbove(const std::string& path);
// One such folder.
int SyncFolder(const std::string& folder);

}  // namespace espalier
