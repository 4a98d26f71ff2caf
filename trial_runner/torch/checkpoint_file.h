#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace espalier {

// Writes `bytes` as <folder>/step-<step>.pt so that a crash at any moment leaves either the whole
// file or none: a temporary file, synced, renamed, and its folder synced. Makes the folder, keeps
// the newest kKeptCheckpoints and returns the path.
inline constexpr std::size_t kKeptCheckpoints = 2;
absl::StatusOr<std::string> WriteCheckpointFile(const std::string& folder, std::int64_t step,
                                                std::string_view bytes);

// The checkpoint files of a folder, newest first. Empty if there is no such folder.
std::vector<std::string> CheckpointFiles(const std::string& folder);

}  // namespace espalier
