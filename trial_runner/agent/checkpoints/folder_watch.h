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

// Between looks at the folder of a program that does not say when it has saved something.
inline constexpr std::chrono::seconds kFolderLook{5};

// Checkpoint folders of programs that know nothing of us (NNI's trials, scripts): such a program
// writes files when it likes, and tells nobody. A folder that was the same at two looks one after
// another, and is not what was told last, counts as saved; so does what is there when the program
// has ended. Who writes for longer than that between two files writes to NAME.tmp and renames. The
// owner thread of the agent alone.
class FolderWatch {
 public:
  using Clock = std::chrono::steady_clock;

  // Of a replica that begins.
  void Add(const v1::StartReplica& start, std::string folder);
  // It tells of its checkpoints by itself, or has ended.
  void Remove(std::int64_t replica_id) { watched_.erase(replica_id); }

  std::optional<Clock::time_point> NextLook() const;
  // What was saved, by replica, if it is time to look.
  std::vector<std::pair<std::int64_t, v1::CheckpointSaved>> Look(Clock::time_point now);
  // Its program has ended.
  std::optional<v1::CheckpointSaved> LastLook(std::int64_t replica_id);

 private:
  struct Watched {
    std::string folder;
    std::string seen;  // fingerprint, at the last look
    std::string told;
    std::int64_t step = 0;  // counts what was told, over all starts of the trial
  };

  static v1::CheckpointSaved Tell(Watched& watched, const std::string& fingerprint);

  std::map<std::int64_t, Watched> watched_;
  Clock::time_point next_;
};

}  // namespace espalier
