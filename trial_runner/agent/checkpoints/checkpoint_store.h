#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "trial_runner/agent/checkpoints/checkpoint_fetch.h"

namespace espalier {

// The place of the pool's checkpoints as one agent sees it. There are two kinds: the machines' own
// disks, between which agents fetch checkpoints from one another, and a folder that all machines
// see. In both, what Obtain has brought is there whole, under the same name, and programs read it
// as a plain file.
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
  // NOT_FOUND: none of the sources in the order has it whole, or the trial that it is to be copied
  // from has it no more.
  virtual absl::StatusOr<std::string> Obtain(const FetchOrder& order,
                                             const std::function<bool(double)>& wait,
                                             const FetchNote& note) const = 0;
};

// A store below `directory`, on this machine's own disk.
std::unique_ptr<CheckpointStore> OwnDisk(std::string directory, FetchLimits limits = {});

// A store below `directory`, which several machines see, perhaps under other paths. What a machine
// that does not see it has is fetched from there. `agent` tells this agent from the others, also
// when it has been started again: they may fetch the same at one time.
std::unique_ptr<CheckpointStore> SharedFolder(std::string directory, const std::string& agent,
                                              FetchLimits limits = {});

// The mark of a shared folder. The first agent writes it, and every agent that sees this very
// folder reads it there: agents with different marks have different folders, whatever their paths.
// Fails if the folder cannot be written to.
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

// Removes all but the newest kKeptCopies of the fetched checkpoints in the trial's folder. What the
// trial has written there by itself is kept; the trial removes it.
inline constexpr std::size_t kKeptCopies = 2;
void RemoveOldCopies(const std::string& folder);

// Removes all that was fetched, and what is under way; the folder too, if nothing else is in it.
void RemoveCopies(const std::string& folder);

// Notes that the trial runs there, so that what lies in the folder is its own from now on.
void KeepCopiesAsOwn(const std::string& folder);

}  // namespace espalier
