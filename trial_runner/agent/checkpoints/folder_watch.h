#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tuner.pb.h"

namespace espalier {

// The time between two looks at the folder of a program that does not say when it has saved.
inline constexpr std::chrono::seconds kFolderLook{5};

// Watches the checkpoint folders of programs that know nothing of us (NNI's trials, scripts). Such
// a program writes files when it likes, and reports nothing. A folder that was the same at two
// successive looks, and differs from what was reported last, counts as a checkpoint; so does what
// is there when the program has ended. A program that pauses for longer than that between two files
// has to write to NAME.tmp and rename. Used by the agent's owner thread alone.
class FolderWatch {
 public:
  using Clock = std::chrono::steady_clock;

  // `by_path`: others fetch nothing here, so that it tells that there is a checkpoint when there
  // first is one, and what is there at the program's end, by the path of the folder, which ends
  // with '/', and without a fingerprint.
  explicit FolderWatch(bool by_path = false) : by_path_(by_path) {}

  // A replica begins.
  void Add(const v1::StartReplica& start, std::string folder);
  // The replica reports its checkpoints by itself, or has ended.
  void Remove(std::int64_t replica_id) { watched_.erase(replica_id); }

  std::optional<Clock::time_point> NextLook() const;
  // The checkpoints that were saved since, by replica, if it is time to look.
  std::vector<std::pair<std::int64_t, v1::CheckpointSaved>> Look(Clock::time_point now);
  // The replica's program has ended: what is in its folder counts.
  std::optional<v1::CheckpointSaved> LastLook(std::int64_t replica_id);

 private:
  struct Watched {
    std::string folder;
    std::string seen;  // fingerprint, at the last look
    std::string told;
    std::int64_t step = 0;  // counts what was told, over all starts of the trial
  };

  v1::CheckpointSaved Tell(Watched& watched, const std::string& fingerprint) const;

  const bool by_path_;
  std::map<std::int64_t, Watched> watched_;
  Clock::time_point next_;
};

}  // namespace espalier
