#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/synced_folders.h"
#include "trial_runner/torch/process/better_value.h"

namespace espalier {

struct CheckpointFile {
  std::string folder;
  std::int64_t step = 0;
  std::optional<double> value = {};  // the trial's last
  BetterValue better = BetterValue::kUnknown;
  // Called with the number of bytes that are newly safe on the disk, every few dozen megabytes.
  std::function<void(std::int64_t bytes)> synced = {};
  SyncedFolders* above = nullptr;  // of whoever writes many; null: all above is synced
};

using ByteSink = std::function<void(const void* bytes, std::size_t count)>;
using CheckpointContent = std::function<absl::Status(const ByteSink& sink)>;

// Writes <folder>/step-<step>.pt so that a crash at any moment leaves either the whole file or
// none: a temporary file, synced, renamed, and its folder synced. The content is a zip archive, as
// all of LibTorch's are; a checksum of the file and the value are added as the archive's comment,
// which other readers skip. Makes the folder; keeps the newest kKeptCheckpoints up to this step and
// the best one, and removes older ones and what killed writers have left behind. Files of later
// steps, which an earlier run left in the folder, stay. Returns the path.
//
// While it is being written the folder needs room for one more file than are kept.
inline constexpr std::size_t kKeptCheckpoints = 2;
absl::StatusOr<std::string> WriteCheckpointFile(const CheckpointFile& file,
                                                const CheckpointContent& content);

// Reads all of the file and compares its checksum. Fails with the reason if it is not whole, or was
// not written by WriteCheckpointFile.
absl::Status VerifyCheckpointFile(const std::string& path);

// The checkpoint files of a folder, newest first. Empty if there is no such folder.
std::vector<std::string> CheckpointFiles(const std::string& folder);

}  // namespace espalier
