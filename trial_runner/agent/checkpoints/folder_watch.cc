#include "trial_runner/agent/checkpoints/folder_watch.h"

#include <algorithm>

#include "trial_runner/agent/checkpoints/checkpoint_manifest.h"
#include "trial_runner/agent/checkpoints/checkpoint_store.h"

namespace espalier {
namespace {

// The fingerprint of the whole folder; empty: there is nothing, it changes, or a program of ours
// has written there, which speaks for itself.
std::string FingerprintOf(const std::string& folder) {
  const absl::StatusOr<CheckpointManifest> manifest = ReadManifest(folder, "");
  if (!manifest.ok()) return "";
  const bool ours = std::any_of(
      manifest->parts.begin(), manifest->parts.end(),
      [](const CheckpointPart& part) { return StepOfCheckpoint(part.path).has_value(); });
  return ours ? "" : manifest->fingerprint;
}

}  // namespace

void FolderWatch::Add(const v1::StartReplica& start, std::string folder) {
  if (!start.checkpoint().empty() && (!start.has_from() || !start.from().name().empty())) return;
  if (watched_.empty()) next_ = Clock::now() + kFolderLook;
  Watched& watched = watched_[start.replica_id()];
  watched.folder = std::move(folder);
  watched.step = start.from().step();
  watched.told = start.from().fingerprint();
}

std::optional<FolderWatch::Clock::time_point> FolderWatch::NextLook() const {
  if (watched_.empty()) return std::nullopt;
  return next_;
}

v1::CheckpointSaved FolderWatch::Tell(Watched& watched, const std::string& fingerprint) const {
  watched.told = fingerprint;
  v1::CheckpointSaved saved;
  saved.set_path(by_path_ ? watched.folder + "/" : watched.folder);
  saved.set_step(++watched.step);
  if (!by_path_) saved.set_fingerprint(fingerprint);
  return saved;
}

std::vector<std::pair<std::int64_t, v1::CheckpointSaved>> FolderWatch::Look(Clock::time_point now) {
  std::vector<std::pair<std::int64_t, v1::CheckpointSaved>> saved;
  if (watched_.empty() || now < next_) return saved;
  next_ = now + kFolderLook;
  for (auto& [replica, watched] : watched_) {
    if (by_path_ && !watched.told.empty()) continue;
    const std::string now_there = FingerprintOf(watched.folder);
    const bool quiet = watched.seen == now_there;
    watched.seen = now_there;
    if (!quiet || now_there.empty() || watched.told == now_there) continue;
    saved.emplace_back(replica, Tell(watched, watched.seen));
  }
  return saved;
}

std::optional<v1::CheckpointSaved> FolderWatch::LastLook(std::int64_t replica_id) {
  auto watched = watched_.extract(replica_id);
  if (watched.empty()) return std::nullopt;
  const std::string there = FingerprintOf(watched.mapped().folder);
  if (there.empty() || there == watched.mapped().told) return std::nullopt;
  return Tell(watched.mapped(), there);
}

}  // namespace espalier
