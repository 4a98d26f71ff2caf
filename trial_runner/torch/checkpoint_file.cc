#include "trial_runner/torch/checkpoint_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tuner/base/status.h"

namespace espalier {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kSuffix = ".pt";

absl::Status FileError(const std::string& path, const char* what) {
  return absl::UnavailableError(
      absl::StrCat("checkpoint ", path, ": ", what, ": ", std::strerror(errno)));
}

absl::Status WriteAndSync(const std::string& path, std::string_view bytes) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return FileError(path, "cannot open");
  const absl::Cleanup close_file = [file] { close(file); };
  while (!bytes.empty()) {
    const ssize_t written = write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return FileError(path, "cannot write");
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  if (fsync(file) != 0) return FileError(path, "cannot sync");
  return absl::OkStatus();
}

absl::Status SyncFolder(const std::string& folder) {
  const int handle = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (handle < 0) return FileError(folder, "cannot open");
  const absl::Cleanup close_handle = [handle] { close(handle); };
  if (fsync(handle) != 0) return FileError(folder, "cannot sync");
  return absl::OkStatus();
}

std::map<std::int64_t, fs::path> FilesByStep(const std::string& folder) {
  std::error_code ignored;
  std::map<std::int64_t, fs::path> by_step;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    std::int64_t step = 0;
    if (name.starts_with(kPrefix) && name.ends_with(kSuffix) &&
        absl::SimpleAtoi(name.substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size()),
                         &step)) {
      by_step[step] = entry.path();
    }
  }
  return by_step;
}

void RemoveOldCheckpoints(const std::string& folder) {
  std::error_code ignored;  // an old checkpoint that stays does no harm
  std::map<std::int64_t, fs::path> by_step = FilesByStep(folder);
  while (by_step.size() > kKeptCheckpoints) {
    fs::remove(by_step.begin()->second, ignored);
    by_step.erase(by_step.begin());
  }
}

}  // namespace

std::vector<std::string> CheckpointFiles(const std::string& folder) {
  const std::map<std::int64_t, fs::path> by_step = FilesByStep(folder);
  std::vector<std::string> files;
  for (auto it = by_step.rbegin(); it != by_step.rend(); ++it) files.push_back(it->second.string());
  return files;
}

absl::StatusOr<std::string> WriteCheckpointFile(const std::string& folder, std::int64_t step,
                                                std::string_view bytes) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) {
    return absl::UnavailableError(
        absl::StrCat("checkpoint folder ", folder, ": ", failed.message()));
  }
  const std::string path = absl::StrCat(folder, "/step-", step, ".pt");
  // Replicas that leave a broken group may all be writing the same step.
  const std::string temporary = absl::StrCat(path, ".", getpid(), ".tmp");
  if (absl::Status written = WriteAndSync(temporary, bytes); !written.ok()) {
    fs::remove(temporary, failed);
    return written;
  }
  if (rename(temporary.c_str(), path.c_str()) != 0) return FileError(path, "cannot rename");
  ESPALIER_RETURN_IF_ERROR(SyncFolder(folder));
  RemoveOldCheckpoints(folder);
  return path;
}

}  // namespace espalier
