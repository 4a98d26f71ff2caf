#include "trial_runner/torch/checkpoints/checkpoint_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/checkpoint_seal.h"
#include "base/checksum.h"
#include "base/file_descriptor.h"
#include "base/folder_entries.h"
#include "base/private_files.h"
#include "base/status.h"
#include "base/sync_path.h"

namespace espalier {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kSuffix = ".pt";
constexpr std::string_view kTemporary = ".tmp";

// The last record of a zip archive: its signature, and at the very end its comment's length.
constexpr std::string_view kZipEnd = "PK\005\006";
constexpr std::size_t kZipEndSize = 22;

constexpr std::size_t kBufferSize = 1 << 20;

// Synced on the way, so that a slow disk shows while the file is written and not in one long sync
// at its end.
constexpr std::size_t kSyncBytes = 64 << 20;

absl::Status FileError(const std::string& path, const char* what, int error = errno) {
  return absl::UnavailableError(
      absl::StrCat("checkpoint ", path, ": ", what, ": ", std::strerror(error)));
}

// A file under way. After an error nothing more is written: Finish says what it was. (The archive's
// writer does not bear errors while it writes.)
class SealedFile {
 public:
  SealedFile(int file, std::string path, std::function<void(std::int64_t)> synced)
      : file_(file), path_(std::move(path)), synced_(std::move(synced)) {}

  void Append(const void* bytes, std::size_t count) {
    const auto* start = static_cast<const char*>(bytes);
    if (count >= kBufferSize) {
      Emit(buffer_);
      Emit({start, count - kZipEndSize});
      buffer_.assign(start + count - kZipEndSize, kZipEndSize);
      return;
    }
    buffer_.append(start, count);
    if (buffer_.size() < kBufferSize) return;
    const std::size_t ready = buffer_.size() - kZipEndSize;
    Emit(std::string_view(buffer_).substr(0, ready));
    buffer_.erase(0, ready);
  }

  absl::Status Finish(std::optional<double> value) {
    const std::size_t size = buffer_.size();
    const bool zip = size >= kZipEndSize && buffer_.substr(size - kZipEndSize, 4) == kZipEnd &&
                     buffer_[size - 2] == 0 && buffer_[size - 1] == 0;
    if (status_.ok() && !zip) {
      return absl::InternalError(absl::StrCat("checkpoint ", path_, ": not a zip archive"));
    }
    if (zip) buffer_[size - 2] = static_cast<char>(kCheckpointSealBytes);
    Emit(buffer_);
    const double noted = value.value_or(std::numeric_limits<double>::quiet_NaN());
    Emit(TextOf(CheckpointSeal{0, checksum_.value(), noted}));
    if (status_.ok() && fsync(file_) != 0) status_ = FileError(path_, "cannot sync");
    TellSynced();
    return status_;
  }

 private:
  void Emit(std::string_view bytes) {
    checksum_.Add(bytes.data(), bytes.size());
    while (!bytes.empty() && status_.ok()) {
      const std::size_t most = kSyncBytes - unsynced_;
      const ssize_t written = write(file_, bytes.data(), std::min(bytes.size(), most));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) {
        status_ = FileError(path_, "cannot write");
      } else {
        bytes.remove_prefix(static_cast<std::size_t>(written));
        unsynced_ += static_cast<std::size_t>(written);
      }
      if (unsynced_ >= kSyncBytes) {
        if (fdatasync(file_) != 0) status_ = FileError(path_, "cannot sync");
        TellSynced();
      }
    }
  }

  void TellSynced() {
    if (synced_ && status_.ok()) synced_(static_cast<std::int64_t>(unsynced_));
    unsynced_ = 0;
  }

  const int file_;
  const std::string path_;
  const std::function<void(std::int64_t)> synced_;
  std::size_t unsynced_ = 0;  // bytes written since the last sync
  std::string buffer_;
  Checksum checksum_;
  absl::Status status_;
};

absl::Status WriteAndSync(int file, const std::string& path, const CheckpointFile& what,
                          const CheckpointContent& content) {
  SealedFile sealed(file, path, what.synced);
  ESPALIER_RETURN_IF_ERROR(
      content([&](const void* bytes, std::size_t count) { sealed.Append(bytes, count); }));
  return sealed.Finish(what.value);
}

std::optional<std::int64_t> StepOf(std::string_view name, std::string_view suffix) {
  std::int64_t step = 0;
  if (!name.starts_with(kPrefix) || !name.ends_with(suffix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  const std::string digits(name.substr(0, name.find('.')));
  if (!absl::SimpleAtoi(digits, &step)) return std::nullopt;
  return step;
}

std::map<std::int64_t, fs::path> FilesByStep(const std::string& folder) {
  std::error_code ignored;
  std::map<std::int64_t, fs::path> by_step;
  for (const auto& entry : FolderEntries(folder, ignored)) {
    if (const auto step = StepOf(entry.path().filename().string(), kSuffix)) {
      by_step[*step] = entry.path();
    }
  }
  return by_step;
}

// Of equals the newest; nothing where no file has a value.
std::optional<std::int64_t> BestStep(const std::map<std::int64_t, fs::path>& by_step,
                                     BetterValue better) {
  if (better == BetterValue::kUnknown) return std::nullopt;
  std::optional<std::int64_t> best;
  double best_value = 0;
  for (const auto& [step, path] : by_step) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) continue;
    const std::optional<CheckpointSeal> seal = ReadCheckpointSeal(file);
    close(file);
    if (!seal || std::isnan(seal->value)) continue;
    const bool worse =
        better == BetterValue::kSmaller ? seal->value > best_value : seal->value < best_value;
    if (best && worse) continue;
    best = step;
    best_value = seal->value;
  }
  return best;
}

void RemoveOldCheckpoints(const CheckpointFile& newest) {
  std::error_code ignored;  // an old checkpoint that stays does no harm
  std::map<std::int64_t, fs::path> by_step = FilesByStep(newest.folder);
  // What is beyond the newest is of another run, which used the folder before: it does not count.
  by_step.erase(by_step.upper_bound(newest.step), by_step.end());
  const std::optional<std::int64_t> best = BestStep(by_step, newest.better);
  std::size_t left = by_step.size();
  for (const auto& [step, path] : by_step) {
    if (left <= kKeptCheckpoints) break;
    --left;
    if (step != best) fs::remove(path, ignored);
  }
}

// Of writers that were killed: of no use once there is a newer checkpoint.
void RemoveLeftovers(const std::string& folder) {
  std::error_code ignored;
  const std::map<std::int64_t, fs::path> by_step = FilesByStep(folder);
  if (by_step.empty()) return;
  std::vector<fs::path> leftovers;
  for (const auto& entry : FolderEntries(folder, ignored)) {
    const auto step = StepOf(entry.path().filename().string(), kTemporary);
    if (step && *step < by_step.rbegin()->first) leftovers.push_back(entry.path());
  }
  for (const fs::path& leftover : leftovers) fs::remove(leftover, ignored);
}

}  // namespace

std::vector<std::string> CheckpointFiles(const std::string& folder) {
  const std::map<std::int64_t, fs::path> by_step = FilesByStep(folder);
  std::vector<std::string> files;
  for (auto it = by_step.rbegin(); it != by_step.rend(); ++it) files.push_back(it->second.string());
  return files;
}

absl::StatusOr<std::string> WriteCheckpointFile(const CheckpointFile& file,
                                                const CheckpointContent& content) {
  if (const absl::Status made = MakePrivateFolders(file.folder); !made.ok()) {
    return absl::UnavailableError(
        absl::StrCat("checkpoint folder ", file.folder, ": ", made.message()));
  }
  std::error_code failed;
  const std::string path = absl::StrCat(file.folder, "/step-", file.step, ".pt");
  // Replicas that leave a broken group may all be writing the same step, from several machines into
  // one folder.
  std::string temporary = absl::StrCat(path, ".XXXXXX", std::string(kTemporary));
  const FileDescriptor written(
      mkostemps(temporary.data(), static_cast<int>(kTemporary.size()), O_CLOEXEC));
  if (!written.open()) return FileError(temporary, "cannot open");
  absl::Cleanup remove_temporary = [&] { fs::remove(temporary, failed); };
  ESPALIER_RETURN_IF_ERROR(WriteAndSync(written.get(), temporary, file, content));
  if (rename(temporary.c_str(), path.c_str()) != 0) return FileError(path, "cannot rename");
  std::move(remove_temporary).Cancel();
  if (const int unsynced = SyncPath(file.folder); unsynced != 0) {
    return FileError(file.folder, "cannot sync", unsynced);
  }
  // What made the folders, or wrote here first, may have been killed before it did so.
  const int error = file.above ? file.above->SyncAbove(file.folder) : SyncFoldersAbove(file.folder);
  if (error != 0) return FileError(file.folder, "cannot sync what is above", error);
  RemoveOldCheckpoints(file);
  RemoveLeftovers(file.folder);
  return path;
}

absl::Status VerifyCheckpointFile(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return FileError(path, "cannot open");
  const absl::Cleanup close_file = [file] { close(file); };
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    const std::vector<std::string> files = CheckpointFiles(path);
    return absl::InvalidArgumentError(
        absl::StrCat("checkpoint ", path, ": is a folder",
                     files.empty() ? ", and it has no checkpoint in it: want a file"
                                   : absl::StrCat(": want a file in it, such as ", files.front())));
  }
  const absl::Status checked = CheckCheckpointSeal(file);
  if (absl::IsNotFound(checked)) {
    return absl::DataLossError(
        absl::StrCat("checkpoint ", path,
                     ": there is no checksum at its end: it is cut off, or was not written by a "
                     "trial of this version"));
  }
  if (checked.ok()) return checked;
  return absl::Status(checked.code(), absl::StrCat("checkpoint ", path, ": ", checked.message()));
}

}  // namespace espalier
