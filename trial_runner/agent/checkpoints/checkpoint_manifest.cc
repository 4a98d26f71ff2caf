#include "trial_runner/agent/checkpoints/checkpoint_manifest.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/file_descriptor.h"
#include "tuner/credentials/sha256.h"

namespace espalier {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kTail = 4096;
constexpr std::size_t kFingerprintBytes = 16;

absl::Status NoCheckpoint(const std::string& path, const std::string& reason) {
  return absl::NotFoundError(absl::StrCat("no checkpoint at ", path, ": ", reason));
}

// Adds the part's size and last bytes to the fingerprint.
absl::Status AddPart(const std::string& folder, CheckpointPart& part, Sha256& fingerprint) {
  const std::string path = absl::StrCat(folder, "/", part.path);
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat status {};
  if (!file.open() || fstat(file.get(), &status) != 0) return NoCheckpoint(path, strerror(errno));
  if (!S_ISREG(status.st_mode)) return NoCheckpoint(path, "it is no regular file");
  part.size = status.st_size;
  std::string tail(static_cast<std::size_t>(std::min(part.size, kTail)), '\0');
  const ssize_t got = pread(file.get(), tail.data(), tail.size(),
                            part.size - static_cast<std::int64_t>(tail.size()));
  if (got != static_cast<ssize_t>(tail.size())) return NoCheckpoint(path, "it changes");
  fingerprint.Add(absl::StrCat(part.path.size(), " ", part.path, " ", part.size, " "));
  fingerprint.Add(tail);
  return absl::OkStatus();
}

bool Passing(const fs::path& name) {
  const std::string text = name.filename().string();
  return text.starts_with('.') || text.ends_with(".tmp") || text.ends_with(".new");
}

absl::StatusOr<std::vector<CheckpointPart>> PartsBelow(const std::string& folder) {
  std::vector<CheckpointPart> parts;
  std::error_code error;
  fs::recursive_directory_iterator entries(folder, error);
  for (; !error && entries != fs::recursive_directory_iterator(); entries.increment(error)) {
    if (Passing(entries->path())) {
      entries.disable_recursion_pending();
    } else if (entries->symlink_status().type() == fs::file_type::regular) {
      parts.push_back({entries->path().lexically_relative(folder).string(), 0});
    }
    if (parts.size() > kMaxCheckpointParts) {
      return absl::ResourceExhaustedError(absl::StrCat("checkpoint folder ", folder,
                                                       " has more than ", kMaxCheckpointParts,
                                                       " files, which is the most that is copied"));
    }
  }
  if (error) return NoCheckpoint(folder, error.message());
  std::sort(parts.begin(), parts.end(),
            [](const auto& a, const auto& b) { return a.path < b.path; });
  return parts;
}

}  // namespace

bool StaysInside(std::string_view path) {
  if (path.empty() || path.size() > kMaxCheckpointPath || path.front() == '/' ||
      path.find('\0') != std::string_view::npos) {
    return false;
  }
  const fs::path parts{std::string(path)};
  return std::none_of(parts.begin(), parts.end(), [](const fs::path& part) {
    return part.empty() || part == "." || part == "..";
  });
}

absl::StatusOr<CheckpointManifest> ReadManifest(const std::string& folder,
                                                const std::string& name) {
  CheckpointManifest manifest;
  if (name.empty()) {
    ESPALIER_ASSIGN_OR_RETURN(manifest.parts, PartsBelow(folder));
    if (manifest.parts.empty()) return NoCheckpoint(folder, "the folder has no files");
  } else if (StaysInside(name)) {
    manifest.parts.push_back({name, 0});
  } else {
    return absl::InvalidArgumentError(absl::StrCat(
        "checkpoint \"", name, "\" should be a file of the trial's checkpoint folder"));
  }
  Sha256 fingerprint;
  for (CheckpointPart& part : manifest.parts) {
    ESPALIER_RETURN_IF_ERROR(AddPart(folder, part, fingerprint));
    manifest.size += part.size;
  }
  manifest.fingerprint = absl::BytesToHexString(fingerprint.Take().substr(0, kFingerprintBytes));
  return manifest;
}

}  // namespace espalier
