#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

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
  // A hash of the paths, the sizes and the last bytes of each part; a checkpoint of a trial has its
  // own checksum in those. Tells two checkpoints of one name apart without reading them.
  std::string fingerprint;
};

// The manifest of the file `name` in the folder. If the name is empty: of everything in the folder
// but hidden files (".x"), unfinished ones (".tmp") and what is no regular file. NOT_FOUND: there
// is no such file, or nothing.
absl::StatusOr<CheckpointManifest> ReadManifest(const std::string& folder, const std::string& name);

// Whether a path that a stranger names stays in the folder that it is relative to. Pure.
bool StaysInside(std::string_view path);

}  // namespace espalier
