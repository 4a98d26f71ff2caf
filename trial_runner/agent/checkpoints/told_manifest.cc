#include "trial_runner/agent/checkpoints/told_manifest.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <set>

#include "absl/strings/ascii.h"

namespace espalier {
namespace {

// Staged files are kept by it, beside what has names of another kind.
bool IsFingerprint(const std::string& text) {
  return StaysInside(text) && std::all_of(text.begin(), text.end(),
                                          [](unsigned char c) { return absl::ascii_isxdigit(c); });
}

}  // namespace

absl::StatusOr<CheckpointManifest> ManifestOf(const v1::CheckpointManifest& told,
                                              const std::string& name) {
  CheckpointManifest manifest;
  manifest.fingerprint = told.fingerprint();
  const bool one = !name.empty();
  bool good = IsFingerprint(told.fingerprint()) &&
              static_cast<std::size_t>(told.files_size()) <= kMaxCheckpointParts &&
              told.files_size() >= 1 && (!one || told.files_size() == 1);
  std::set<std::string> places;  // "b//c" is "b/c"
  for (const v1::CheckpointPart& part : told.files()) {
    constexpr std::int64_t kMost = std::int64_t{1} << 50;
    good = good && StaysInside(part.path()) && (!one || part.path() == name) && part.size() >= 0 &&
           places.insert(std::filesystem::path(part.path()).lexically_normal().string()).second &&
           part.size() <= kMost - manifest.size;
    if (!good) break;
    manifest.parts.push_back({part.path(), part.size()});
    manifest.size += part.size();
  }
  if (!good) return absl::DataLossError("its answer is no manifest of that checkpoint");
  return manifest;
}

}  // namespace espalier
