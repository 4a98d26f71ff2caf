#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace espalier {

enum class TrimBy { kAnyMeans, kCopy };

// Takes bytes out of the middle of a log that is larger than `limit`, while programs go on
// appending to it (O_APPEND): its first eighth or so of the limit stays, with a line at the end of
// it which says that there was more, and so does the newest half. Where the file system can cut
// out a range (ext4, XFS), nothing of these is lost; elsewhere, or by kCopy, what is printed in the
// instant between a copy and a truncation is. Requires limit >= 4096.
absl::Status TrimLog(const std::string& path, std::int64_t limit, TrimBy by = TrimBy::kAnyMeans);

}  // namespace espalier
