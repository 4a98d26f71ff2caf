#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"

namespace espalier {

// What a trial of ours writes at the end of its checkpoints (as the comment of a zip archive, which
// other readers skip), so that damage is found: a CRC-64/XZ of all before it, and the trial's
// value.
struct CheckpointSeal {
  std::int64_t size = 0;  // of the file without it
  std::uint64_t checksum = 0;
  double value = 0;  // NaN: none
};

inline constexpr std::size_t kCheckpointSealBytes = 55;

// As it is written; of so many bytes.
std::string TextOf(const CheckpointSeal& seal);

// At the end of an open file; nothing if it has none.
std::optional<CheckpointSeal> ReadCheckpointSeal(int file);

// Reads all of the file and compares its checksum; `go_on` is asked now and then, unless it is
// empty. DATA_LOSS: it is damaged. NOT_FOUND: it has no seal. UNAVAILABLE: it cannot be read.
// CANCELLED: it was not to go on. The reason does not name the file.
absl::Status CheckCheckpointSeal(int file, const std::function<bool()>& go_on = {});

}  // namespace espalier
