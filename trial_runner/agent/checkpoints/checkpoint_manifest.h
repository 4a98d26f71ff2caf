#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/base/status.h"

namespace espalier {

inline constexpr std::size_t kMaxCheckpointParts = 10000;
inline constexpr std::size_t kMaxCheckpointPath = 1024;  // bytes of one part's path

struct CheckpointPart {
  std::string path;  // relative to the checkpoint folder
  std::int64_t size = 0;
};

// What a checkpoint consists of: one file of a trial's checkpoint folder, or all files below it.
struct CheckpointManifest {
  std::vector<CheckpointPart> parts;  // by path
  std::int64_t size = 0;              // of all of them
  // Of paths, sizes and the last bytes of each part, where a checkpoint of a trial has its own
  // checksum. Tells two checkpoints of one name apart without reading them.
  std::string fingerprint;
};

// Of the file `name` in the folder; of everything in it if the name is empty, less what is hidden
// (".x"), under way (".tmp") or no regular file. NOT_FOUND: it has no such file, or is empty.
absl::StatusOr<CheckpointManifest> ReadManifest(const std::string& folder, const std::string& name);

// Whether a path that a stranger names stays in the folder that it is relative to. Pure.
bool StaysInside(std::string_view path);

}  // namespace espalier
