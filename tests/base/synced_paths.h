#pragma once

#include <set>
#include <string>

namespace espalier {

// The files and folders that this program has synced (fsync) since the last call, by their paths at
// that moment. synced_paths.cc stands in the place of the C library's call.
std::set<std::string> TakeSyncedPaths();

}  // namespace espalier
