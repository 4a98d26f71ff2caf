#include "trial_runner/agent/checkpoints/incoming_checkpoint.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file_descriptor.h"
#include "base/folder_entries.h"
#include "base/free_disk.h"
#include "base/private_files.h"
#include "base/sync_path.h"
#include "trial_runner/agent/checkpoints/checkpoint_damage.h"

namespace espalier {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kReadBytes = 1 << 20;

absl::Status DiskError(const std::string& path, int error) {
  const std::string text = absl::StrCat("cannot write ", path, ": ", strerror(error));
  if (error == ENOSPC || error == EDQUOT) return absl::ResourceExhaustedError(text);
  return absl::FailedPreconditionError(text);
}

absl::Status Sync(const std::string& path) {
  const int error = SyncPath(path);
  return error == 0 ? absl::OkStatus() : DiskError(path, error);
}

absl::Status SyncAbove(const std::string& path) {
  const int error = SyncFoldersAbove(path);
  return error == 0 ? absl::OkStatus() : DiskError(path, error);
}

absl::Status Rename(const std::string& from, const std::string& to) {
  if (rename(from.c_str(), to.c_str()) != 0) return DiskError(to, errno);
  return absl::OkStatus();
}

// The names in a folder and in those below it.
absl::Status SyncNamesBelow(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> folders = {folder};
  for (const auto& entry : EntriesBelow(folder, error)) {
    std::error_code unknown;
    if (entry.is_directory(unknown)) folders.push_back(entry.path().string());
    if (unknown) return DiskError(entry.path().string(), unknown.value());
  }
  if (error) return DiskError(folder, error.value());
  for (const std::string& one : folders) ESPALIER_RETURN_IF_ERROR(Sync(one));
  return absl::OkStatus();
}

std::string InGigabytes(std::int64_t bytes) {
  const std::int64_t megabytes = bytes / 1'000'000;
  return absl::StrCat(static_cast<double>(megabytes) / 1000.0, " GB");
}

}  // namespace

IncomingCheckpoint::IncomingCheckpoint(std::string folder, std::string name, std::string incoming)
    : folder_(std::move(folder)), name_(std::move(name)), incoming_(std::move(incoming)) {}

std::string IncomingCheckpoint::StagingOf(const std::string& fingerprint) const {
  return (fs::path(folder_).parent_path() / incoming_ / fingerprint).string();
}

std::int64_t IncomingCheckpoint::BytesThere(const std::string& fingerprint) const {
  if (fingerprint.empty()) return 0;
  std::int64_t bytes = 0;
  std::error_code error;
  for (const auto& entry : EntriesBelow(StagingOf(fingerprint), error)) {
    std::error_code ignored;
    if (entry.is_regular_file(ignored)) {
      bytes += static_cast<std::int64_t>(entry.file_size(ignored));
    }
  }
  return bytes;
}

absl::Status IncomingCheckpoint::Begin(CheckpointManifest manifest, std::int64_t offset,
                                       std::int64_t spare_bytes) {
  manifest_ = std::move(manifest);
  staging_ = StagingOf(manifest_.fingerprint);
  if (offset == 0) Discard();
  ESPALIER_RETURN_IF_ERROR(MakePrivateFolders(staging_));
  const std::optional<std::int64_t> free = FreeDiskBytes(staging_);
  if (!free) return DiskError(staging_, errno);
  if (*free < manifest_.size - offset + spare_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the disk of ", staging_, " has ", InGigabytes(*free), " free; the checkpoint needs ",
        InGigabytes(manifest_.size - offset), ", and ", InGigabytes(spare_bytes), " stay free"));
  }
  sum_ = Sha256();
  part_ = 0;
  in_part_ = 0;
  received_ = 0;
  return HashThere(offset);
}

// Goes to the place where the next byte belongs.
absl::Status IncomingCheckpoint::HashThere(std::int64_t offset) {
  std::string buffer(kReadBytes, '\0');
  for (; part_ < manifest_.parts.size() && received_ < offset; ++part_) {
    const CheckpointPart& part = manifest_.parts[part_];
    const std::string path = absl::StrCat(staging_, "/", part.path);
    const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.open()) return absl::DataLossError(absl::StrCat(path, ": ", strerror(errno)));
    const std::int64_t here = std::min(part.size, offset - received_);
    for (in_part_ = 0; in_part_ < here;) {
      const std::size_t most = std::min(kReadBytes, static_cast<std::size_t>(here - in_part_));
      const ssize_t got = read(file.get(), buffer.data(), most);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return absl::DataLossError(absl::StrCat(path, ": is not what was written"));
      sum_.Add({buffer.data(), static_cast<std::size_t>(got)});
      in_part_ += got;
      received_ += got;
    }
    if (in_part_ < part.size) return absl::OkStatus();
    in_part_ = 0;
  }
  return absl::OkStatus();
}

absl::Status IncomingCheckpoint::Add(std::string_view bytes) {
  sum_.Add(bytes);
  while (!bytes.empty()) {
    if (part_ == manifest_.parts.size()) {
      return absl::DataLossError(
          absl::StrCat("more than the ", manifest_.size, " bytes that were announced"));
    }
    const CheckpointPart& part = manifest_.parts[part_];
    const auto room = static_cast<std::size_t>(part.size - in_part_);
    ESPALIER_RETURN_IF_ERROR(AppendToPart(bytes.substr(0, room)));
    bytes.remove_prefix(std::min(room, bytes.size()));
    if (in_part_ < part.size) continue;
    ++part_;
    in_part_ = 0;
  }
  return absl::OkStatus();
}

absl::Status IncomingCheckpoint::AppendToPart(std::string_view bytes) {
  const std::string path = absl::StrCat(staging_, "/", manifest_.parts[part_].path);
  if (in_part_ == 0)
    ESPALIER_RETURN_IF_ERROR(MakePrivateFolders(fs::path(path).parent_path().string()));
  const FileDescriptor file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.open()) return DiskError(path, errno);
  while (!bytes.empty()) {
    const ssize_t wrote = write(file.get(), bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return DiskError(path, errno);
    in_part_ += wrote;
    received_ += wrote;
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return absl::OkStatus();
}

absl::Status IncomingCheckpoint::Check(std::string_view sha256) {
  if (received_ != manifest_.size) {
    return absl::UnavailableError(
        absl::StrCat("it ended after ", received_, " of ", manifest_.size, " bytes"));
  }
  if (sum_.Take() != sha256) {
    Discard();
    return absl::DataLossError(
        "the bytes that came have another SHA-256 than those that were read");
  }
  return absl::OkStatus();
}

absl::Status IncomingCheckpoint::CheckForDamage(const std::function<bool()>& go_on) const {
  return espalier::CheckForDamage(staging_, name_, go_on);
}

absl::Status IncomingCheckpoint::PutInPlace() {
  // Empty files have never been written to.
  for (const CheckpointPart& part : manifest_.parts) {
    const std::string path = absl::StrCat(staging_, "/", part.path);
    if (part.size == 0) {
      ESPALIER_RETURN_IF_ERROR(MakePrivateFolders(fs::path(path).parent_path().string()));
      const FileDescriptor empty(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
      if (!empty.open()) return DiskError(path, errno);
    }
    if (const absl::Status synced = Sync(path); !synced.ok()) {
      // What the disk has not taken, the system counts as written from now on: the next try may not
      // go on from it.
      Discard();
      return synced;
    }
  }
  return name_.empty() ? PutFolderInPlace() : PutFileInPlace();
}

absl::Status IncomingCheckpoint::PutFileInPlace() {
  ESPALIER_RETURN_IF_ERROR(MakePrivateFolders(folder_));
  ESPALIER_RETURN_IF_ERROR(
      Rename(absl::StrCat(staging_, "/", name_), absl::StrCat(folder_, "/", name_)));
  ESPALIER_RETURN_IF_ERROR(Sync(folder_));
  ESPALIER_RETURN_IF_ERROR(SyncAbove(folder_));
  std::error_code ignored;  // what else is under way there is of older checkpoints
  fs::remove_all(fs::path(staging_).parent_path(), ignored);
  return absl::OkStatus();
}

// The new folder takes the place of the old one in one call, where the file system can do that.
// Elsewhere by two renames: a crash between them leaves the old folder beside, and the fetch is
// done again.
absl::Status IncomingCheckpoint::TakePlace() const {
  if (!fs::exists(folder_)) return Rename(staging_, folder_);
  const auto exchanged = [this] {
    return renameat2(AT_FDCWD, staging_.c_str(), AT_FDCWD, folder_.c_str(), RENAME_EXCHANGE) == 0;
  };
  if (exchanged()) return absl::OkStatus();
  if (errno != EINVAL && errno != ENOSYS && errno != ENOTSUP) return DiskError(folder_, errno);
  const std::string old = StagingOf("old");
  std::error_code ignored;
  fs::remove_all(old, ignored);
  ESPALIER_RETURN_IF_ERROR(Rename(folder_, old));
  return Rename(staging_, folder_);
}

absl::Status IncomingCheckpoint::PutFolderInPlace() {
  std::error_code ignored;
  const absl::StatusOr<CheckpointManifest> there = ReadManifest(folder_, name_);
  if (there.ok() && there->fingerprint == manifest_.fingerprint) {
    // Another agent that sees the folder has brought it, and its program may be reading it already.
    ESPALIER_RETURN_IF_ERROR(SyncInPlace(folder_, *there));
    fs::remove_all(fs::path(staging_).parent_path(), ignored);
    return absl::OkStatus();
  }
  ESPALIER_RETURN_IF_ERROR(SyncNamesBelow(staging_));
  ESPALIER_RETURN_IF_ERROR(TakePlace());
  ESPALIER_RETURN_IF_ERROR(SyncAbove(folder_));
  fs::remove_all(fs::path(staging_).parent_path(), ignored);
  return absl::OkStatus();
}

void IncomingCheckpoint::Discard() {
  std::error_code ignored;
  fs::remove_all(staging_, ignored);
}

absl::Status SyncInPlace(const std::string& folder, const CheckpointManifest& manifest) {
  std::set<std::string> folders = {folder};
  for (const CheckpointPart& part : manifest.parts) {
    ESPALIER_RETURN_IF_ERROR(Sync(absl::StrCat(folder, "/", part.path)));
    fs::path above = fs::path(part.path).parent_path();
    for (; above.has_relative_path(); above = above.parent_path()) {
      folders.insert(absl::StrCat(folder, "/", above.string()));
    }
  }
  for (const std::string& one : folders) ESPALIER_RETURN_IF_ERROR(Sync(one));
  return SyncAbove(folder);
}

}  // namespace espalier
