#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace espalier {

// What was taken out of a log: nothing, or so many bytes from there on.
struct LogCut {
  std::int64_t at = 0;
  std::int64_t bytes = 0;
};

enum class TrimBy { kAnyMeans, kCopy };

// Takes bytes out of the middle of a log that is larger than `limit`, while programs go on
// appending to it (O_APPEND): its first eighth or so of the limit stays, with a line at the end of
// it which says that there was more, and so does the newest half. Where the file system can cut
// out a range (ext4, XFS), nothing of these is lost; elsewhere, or by kCopy, what is printed in the
// instant between a copy and a truncation is. Requires limit >= 4096.
absl::StatusOr<LogCut> TrimLog(const std::string& path, std::int64_t limit,
                               TrimBy by = TrimBy::kAnyMeans);

}  // namespace espalier
