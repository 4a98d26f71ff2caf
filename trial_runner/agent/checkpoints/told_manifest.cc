#include "trial_runner/agent/checkpoints/told_manifest.h"

#include <cstddef>
#include <cstdint>

namespace espalier {

absl::StatusOr<CheckpointManifest> ManifestOf(const v1::CheckpointManifest& told,
                                              const std::string& name) {
  CheckpointManifest manifest;
  manifest.fingerprint = told.fingerprint();
  const bool one = !name.empty();
  bool good = StaysInside(told.fingerprint()) &&
              told.fingerprint().find('/') == std::string::npos &&
              static_cast<std::size_t>(told.files_size()) <= kMaxCheckpointParts &&
              told.files_size() >= 1 && (!one || told.files_size() == 1);
  for (const v1::CheckpointPart& part : told.files()) {
    constexpr std::int64_t kMost = std::int64_t{1} << 50;
    good = good && StaysInside(part.path()) && (!one || part.path() == name) && part.size() >= 0 &&
           part.size() <= kMost - manifest.size;
    if (!good) break;
    manifest.parts.push_back({part.path(), part.size()});
    manifest.size += part.size();
  }
  if (!good) return absl::DataLossError("its answer is no manifest of that checkpoint");
  return manifest;
}

}  // namespace espalier
