#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trial_runner/agent/checkpoints/checkpoint_fetch.h"
#include "tuner/base/status.h"

namespace espalier {

// Where the checkpoints of the pool's trials lie, as one agent sees it. There are two: disks of the
// machines' own, between which agents fetch checkpoints from one another, and a folder that all
// machines see. Whichever it is, what Obtain has brought is there whole, under the same name, and
// programs read it as a plain file.
//
// Methods may be called from any thread.
class CheckpointStore {
 public:
  virtual ~CheckpointStore() = default;

  // Whether one node's checkpoint is every node's.
  virtual bool shared() const = 0;
  // The trial's checkpoint folder on this machine; it need not exist.
  virtual std::string FolderOf(const std::string& study, std::int64_t trial_number) const = 0;
  // The path of the order's checkpoint, once it is here and, where it has a checksum of its own,
  // that is right: one that is damaged is set aside (checkpoint_damage.h), and fetched. Blocks;
  // `wait` pauses for so many seconds and `note` is told how many bytes have come over the network;
  // either returns false to give up. Fails with what stands in the way, never with an older one.
  // NOT_FOUND: nobody whom the order names has it whole.
  virtual absl::StatusOr<std::string> Obtain(const FetchOrder& order,
                                             const std::function<bool(double)>& wait,
                                             const FetchNote& note) const = 0;
};

// Below `directory`, on a disk of this machine's own.
std::unique_ptr<CheckpointStore> OwnDisk(std::string directory, FetchLimits limits = {});

// Below `directory`, which several machines see, perhaps under other paths. What one that does not
// has is fetched from it.
std::unique_ptr<CheckpointStore> SharedFolder(std::string directory, FetchLimits limits = {});

// What every agent that sees this very folder reads in it; the first one writes it. Agents that say
// something else have another folder, whatever its path. Fails if the folder cannot be written to.
absl::StatusOr<std::string> MarkOfSharedFolder(const std::string& directory);

// "step-120.pt" -> 120: as the trial runner names checkpoints.
std::optional<std::int64_t> StepOfCheckpoint(std::string_view name);

// A checkpoint on this machine's disk.
struct StoredCheckpoint {
  CheckpointName what;
  std::int64_t step = 0;
  bool fetched = false;  // from another machine, and the trial has not run here since
};

// All checkpoints below `directory`, at most so many, those of the trial that wrote last first. Of
// a folder that has none of a trial of ours the whole of it is one, if there is anything in it.
std::vector<StoredCheckpoint> StoredCheckpoints(const std::string& directory, std::size_t most);

// Of fetched checkpoints in the trial's folder the newest kKeptCopies stay. What the trial has
// written there by itself is kept and removed by who writes it.
inline constexpr std::size_t kKeptCopies = 2;
void RemoveOldCopies(const std::string& folder);

// Removes all that was fetched, and what is under way; the folder too, if nothing else is in it.
void RemoveCopies(const std::string& folder);

// The trial runs there: what lies in the folder is its own from now on.
void KeepCopiesAsOwn(const std::string& folder);

}  // namespace espalier
