#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "trial_runner/agent/checkpoints/checkpoint_server.h"

namespace espalier {

// The disk space that a transfer leaves free for others.
inline constexpr std::int64_t kSpareDiskBytes = std::int64_t{64} << 20;

// An agent that has the checkpoint.
struct CheckpointSource {
  std::string node;         // its name, for errors
  std::string address;      // host:port of its CheckpointServer; empty: it has none
  std::string certificate;  // PEM: no other certificate is accepted
  std::string ticket;
  std::string error;  // why it has no address, if that is known
};

struct FetchOrder {
  std::int64_t trial_id = 0;
  CheckpointName what;
  // Identifies the content under that name; empty: whichever the first source has.
  std::string fingerprint;
  std::vector<CheckpointSource> sources;
  // Instead of sources: the number of the trial of the study that has it, in the same store.
  std::optional<std::int64_t> of_trial{};
};

struct FetchLimits {
  std::int64_t spare_disk_bytes = kSpareDiskBytes;
  int fruitless_rounds = 5;    // tries of all sources that bring no byte, before it gives up
  double first_pause_s = 0.1;  // after a fruitless round; doubles
};

// Called with the number of bytes that have come so far; returns false to give up.
using FetchNote = std::function<bool(std::int64_t bytes)>;

// The name of the folder where checkpoints are put together.
inline constexpr char kIncoming[] = "incoming";

// Fetches the checkpoint of the order into the trial's checkpoint folder `folder`, whole or not at
// all. Where a source breaks off, the fetch goes on from the last byte, with this source or
// another; what is not finished stays in the folder `incoming` beside it for the next time. The
// bytes are checked against the source's SHA-256 of them. Only the owner can read the files.
//
// `wait` pauses for so many seconds and returns false to give up. Fails with what each source
// answered (NOT_FOUND if none of them has it), or at once with RESOURCE_EXHAUSTED if the disk has
// no room. Blocks; one call a trial and name in `incoming` at a time.
absl::Status FetchCheckpoint(const FetchOrder& order, const std::string& folder,
                             const FetchLimits& limits, const std::function<bool(double)>& wait,
                             const FetchNote& note, const std::string& incoming = kIncoming);

}  // namespace espalier
