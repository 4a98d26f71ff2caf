#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "trial_runner/agent/checkpoints/checkpoint_manifest.h"
#include "tuner/credentials/sha256.h"

namespace espalier {

// A checkpoint that is being fetched. Its files are written one after another, in the manifest's
// order, to INCOMING/FINGERPRINT beside the trial's checkpoint folder, so that their sizes tell how
// much is there, also after a crash. Used by one thread, as is the folder INCOMING.
class IncomingCheckpoint {
 public:
  // `folder` is the trial's checkpoint folder, `name` as in CheckpointName; `incoming` is a name.
  IncomingCheckpoint(std::string folder, std::string name, std::string incoming);

  // Bytes that an earlier attempt at this content has left; 0: none.
  std::int64_t BytesThere(const std::string& fingerprint) const;

  // Goes on with what is there, or (offset 0) begins anew. RESOURCE_EXHAUSTED: the disk has no room
  // for the rest and `spare_bytes` more.
  absl::Status Begin(CheckpointManifest manifest, std::int64_t offset, std::int64_t spare_bytes);
  absl::Status Add(std::string_view bytes);
  // Compares the checksum once all bytes are there. DATA_LOSS: it differs, and nothing of them is
  // kept.
  absl::Status Check(std::string_view sha256);
  // Whether the checkpoint was sound at its source, where it has a checksum of its own. DATA_LOSS:
  // it was not.
  absl::Status CheckForDamage(const std::function<bool()>& go_on) const;
  // Moves it into the checkpoint folder. To be called once it is checked.
  absl::Status PutInPlace();
  void Discard();

 private:
  std::string StagingOf(const std::string& fingerprint) const;
  absl::Status HashThere(std::int64_t offset);
  absl::Status AppendToPart(std::string_view bytes);
  absl::Status PutFileInPlace();
  absl::Status PutFolderInPlace();
  absl::Status TakePlace() const;

  const std::string folder_;
  const std::string name_;
  const std::string incoming_;
  std::string staging_;
  CheckpointManifest manifest_;
  std::size_t part_ = 0;      // being written
  std::int64_t in_part_ = 0;  // bytes of it
  std::int64_t received_ = 0;
  Sha256 sum_;
};

// Waits until a checkpoint that is in its place already would outlast a loss of power: whoever put
// it there may have ended, or failed, before it was so.
absl::Status SyncInPlace(const std::string& folder, const CheckpointManifest& manifest);

}  // namespace espalier
