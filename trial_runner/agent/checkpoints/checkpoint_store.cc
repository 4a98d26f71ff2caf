#include "trial_runner/agent/checkpoints/checkpoint_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/file_descriptor.h"
#include "base/folder_entries.h"
#include "base/private_files.h"
#include "base/sync_path.h"
#include "base/synced_folders.h"
#include "base/trial_folder.h"
#include "spdlog/spdlog.h"
#include "trial_runner/agent/checkpoints/checkpoint_damage.h"
#include "trial_runner/agent/checkpoints/checkpoint_manifest.h"
#include "trial_runner/agent/checkpoints/incoming_checkpoint.h"
#include "tuner/credentials/hexadecimal.h"
#include "tuner/credentials/sha256.h"

namespace espalier {
std::optional<std::int64_t> StepOfCheckpoint(std::string_view name) {
  std::int64_t step = 0;
  constexpr std::string_view kPrefix = "step-";
  constexpr std::string_view kSuffix = ".pt";
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  name.remove_suffix(kSuffix.size());
  if (!absl::SimpleAtoi(std::string(name), &step)) return std::nullopt;
  return step;
}

namespace {

namespace fs = std::filesystem;

constexpr char kMarkFile[] = ".espalier-shared-folder";
constexpr std::size_t kMarkBytes = 16;
// A file system over the network may show what others write a little later.
constexpr int kLooksIntoSharedFolder = 6;
constexpr double kFirstLook_s = 0.1;

std::string CheckpointFolder(const std::string& directory, const std::string& study,
                             std::int64_t number) {
  return TrialFolder(directory, study, number) + "/checkpoints";
}

// Beside a checkpoint that was fetched, as ".copy.NAME".
constexpr char kCopyMark[] = ".copy.";

fs::path CopyMarkOf(const fs::path& folder, const std::string& name) {
  return folder / (kCopyMark + name);
}

bool IsFetched(const fs::path& folder, const std::string& name) {
  std::error_code error;
  return fs::exists(CopyMarkOf(folder, name), error);
}

void RemoveCopy(const fs::path& folder, const std::string& name) {
  std::error_code ignored;  // one that stays does no harm
  fs::remove(folder / name, ignored);
  fs::remove(CopyMarkOf(folder, name), ignored);
}

// Considers the order's own content only: another one of that name may be a newer trial's.
absl::Status CheckWhatIsHere(const FetchOrder& order, const std::string& folder,
                             const FetchNote& note) {
  const absl::StatusOr<CheckpointManifest> here = ReadManifest(folder, order.what.name);
  if (!here.ok() || here->fingerprint != order.fingerprint) return absl::OkStatus();
  const absl::Status checked =
      SetAsideIfDamaged(folder, order.what.name, [&note] { return note(0); });
  if (absl::IsDataLoss(checked)) {
    spdlog::warn("checkpoint {} of trial {} in study {} {}", order.what.name,
                 order.what.trial_number, order.what.study, std::string(checked.message()));
  }
  return checked;
}

// `status` with what was the matter with the copy that was here.
absl::Status Besides(const absl::Status& status, const absl::Status& here) {
  if (status.ok() || here.ok()) return status;
  return absl::Status(status.code(), absl::StrCat("its own copy ", std::string(here.message()),
                                                  "; ", std::string(status.message())));
}

absl::Status AddParts(const std::string& folder, const CheckpointManifest& manifest,
                      const FetchNote& note, IncomingCheckpoint& to) {
  constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
  std::string piece(kPieceBytes, '\0');
  for (const CheckpointPart& part : manifest.parts) {
    const std::string path = absl::StrCat(folder, "/", part.path);
    const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!file.open()) return absl::NotFoundError(absl::StrCat(path, ": ", strerror(errno)));
    for (std::int64_t left = part.size; left > 0;) {
      const std::size_t most = std::min(kPieceBytes, static_cast<std::size_t>(left));
      const ssize_t got = read(file.get(), piece.data(), most);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return absl::NotFoundError(absl::StrCat(path, ": ", strerror(errno)));
      if (got == 0) return absl::NotFoundError(absl::StrCat(path, ": it has become shorter"));
      ESPALIER_RETURN_IF_ERROR(to.Add({piece.data(), static_cast<std::size_t>(got)}));
      left -= got;
      if (!note(0)) return absl::CancelledError("given up");
    }
  }
  return absl::OkStatus();
}

// Both kinds keep a trial's checkpoints in its folder below one directory.
class StoreBelow : public CheckpointStore {
 public:
  StoreBelow(std::string directory, FetchLimits limits)
      : directory_(std::move(directory)), limits_(limits) {}

  std::string FolderOf(const std::string& study, std::int64_t number) const override {
    return CheckpointFolder(directory_, study, number);
  }

 protected:
  // What the order's trial is to have of another one's. That one may remove it at any moment: then
  // it is not found, or is whole all the same.
  absl::StatusOr<std::string> TakeOver(const FetchOrder& order, const FetchNote& note,
                                       const std::string& incoming) const {
    const std::string folder = FolderOf(order.what.study, order.what.trial_number);
    const std::string path = absl::StrCat(folder, "/", order.what.name);
    std::error_code error;
    const absl::StatusOr<CheckpointManifest> here = ReadManifest(folder, order.what.name);
    const auto is_it = [&order](const absl::StatusOr<CheckpointManifest>& found) {
      return found.ok() && (order.fingerprint.empty() || order.fingerprint == found->fingerprint);
    };
    if (is_it(here)) {
      ESPALIER_RETURN_IF_ERROR(Settle(folder, order.what.name, *here));
      return path;
    }
    const std::string source = FolderOf(order.what.study, *order.of_trial);
    const absl::StatusOr<CheckpointManifest> there = ReadManifest(source, order.what.name);
    if (!is_it(there)) {
      return absl::NotFoundError(absl::StrCat("checkpoint ", order.what.name, " of trial ",
                                              *order.of_trial, " in study ", order.what.study,
                                              " is there no more"));
    }
    if (Link(source, folder, order.what.name)) {
      const absl::StatusOr<CheckpointManifest> linked = ReadManifest(folder, order.what.name);
      if (is_it(linked)) {
        absl::Status placed =
            SetAsideIfDamaged(folder, order.what.name, [&note] { return note(0); });
        if (placed.ok()) placed = SettleLink(folder, order.what.name, *linked);
        if (placed.ok()) return path;
        // Damage is set aside. What was not looked through is not to be found here as if it were.
        if (!absl::IsDataLoss(placed)) fs::remove(path, error);
        return placed;
      }
      fs::remove(path, error);
    }
    IncomingCheckpoint copy(folder, order.what.name, incoming);
    ESPALIER_RETURN_IF_ERROR(copy.Begin(*there, 0, limits_.spare_disk_bytes));
    const absl::Status read = AddParts(source, *there, note, copy);
    if (!read.ok()) {
      copy.Discard();
      return read;
    }
    ESPALIER_RETURN_IF_ERROR(copy.CheckForDamage([&note] { return note(0); }));
    ESPALIER_RETURN_IF_ERROR(copy.PutInPlace());
    return path;
  }

  // Waits until a checkpoint that lies in its place would outlast a loss of power. Whoever put it
  // there may have ended before that, as the agent before this one may have; what this object has
  // linked there is known to.
  absl::Status Settle(const std::string& folder, const std::string& name,
                      const CheckpointManifest& here) const {
    {
      const std::lock_guard lock(mutex_);
      const auto known = linked_.find(absl::StrCat(folder, "/", name));
      if (known != linked_.end() && known->second == here.fingerprint) return absl::OkStatus();
    }
    return SyncInPlace(folder, here);
  }

  const std::string directory_;
  const FetchLimits limits_;

 private:
  static constexpr std::size_t kMostLinked = 1024;  // beyond, they are synced again

  static absl::Status Synced(const std::string& what, int error) {
    if (error == 0) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat(what, ": cannot sync: ", strerror(error)));
  }
  // Makes it another name of the same file. Only of one with a checksum: it is on the disk, and
  // nobody writes to it again, but a program may to what it has saved by itself. From then on it is
  // only read: what wrote into it would change what other trials begin with. False: it is none, or
  // is there no more, or the file system cannot.
  static bool Link(const std::string& source, const std::string& folder, const std::string& name) {
    if (name.empty() || !HasChecksum(source, name) || !MakePrivateFolders(folder).ok()) {
      return false;
    }
    const std::string from = absl::StrCat(source, "/", name);
    return chmod(from.c_str(), S_IRUSR) == 0 &&
           link(from.c_str(), absl::StrCat(folder, "/", name).c_str()) == 0;
  }
  // The file is on the disk; its new name, and the folders that may be new, are not.
  absl::Status SettleLink(const std::string& folder, const std::string& name,
                          const CheckpointManifest& linked) const {
    // Side by side: a clone that takes a member's place waits for both.
    std::future<int> own = std::async(SyncPath, folder);
    const int above = above_.SyncAbove(folder);
    ESPALIER_RETURN_IF_ERROR(Synced(folder, own.get()));
    ESPALIER_RETURN_IF_ERROR(Synced(folder, above));
    const std::lock_guard lock(mutex_);
    if (linked_.size() >= kMostLinked) linked_.clear();
    linked_[absl::StrCat(folder, "/", name)] = linked.fingerprint;
    return absl::OkStatus();
  }

  mutable SyncedFolders above_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::string> linked_;  // fingerprints, by path
};

class DiskStore final : public StoreBelow {
 public:
  using StoreBelow::StoreBelow;

  bool shared() const override { return false; }

  absl::StatusOr<std::string> Obtain(const FetchOrder& order,
                                     const std::function<bool(double)>& wait,
                                     const FetchNote& note) const override {
    if (order.of_trial) return TakeOver(order, note, kIncoming);
    const std::string folder = FolderOf(order.what.study, order.what.trial_number);
    std::int64_t came = 0;
    const FetchNote counted = [&](std::int64_t bytes) {
      came = bytes;
      return note(bytes);
    };
    const absl::Status here = CheckWhatIsHere(order, folder, note);
    if (!here.ok() && !absl::IsDataLoss(here)) return here;
    const absl::StatusOr<CheckpointManifest> there = ReadManifest(folder, order.what.name);
    if (here.ok() && there.ok() && there->fingerprint == order.fingerprint) {
      ESPALIER_RETURN_IF_ERROR(Settle(folder, order.what.name, *there));
      RemoveOldCopies(folder);
      return absl::StrCat(folder, "/", order.what.name);
    }
    ESPALIER_RETURN_IF_ERROR(Besides(FetchCheckpoint(order, folder, limits_, wait, counted), here));
    // Else it was there before, perhaps as the trial's own.
    if (came > 0) {
      ESPALIER_RETURN_IF_ERROR(WritePrivateFile(CopyMarkOf(folder, order.what.name).string(), ""));
    }
    RemoveOldCopies(folder);
    return absl::StrCat(folder, "/", order.what.name);
  }
};

// The agent's own place for what it fetches: others that see the folder may fetch the same.
std::string IncomingOf(const std::string& agent) {
  constexpr std::size_t kDigits = 16;
  Sha256 sum;
  sum.Add(agent);
  return absl::StrCat(kIncoming, "-", Hexadecimal(sum.Take()).substr(0, kDigits));
}

class FolderStore final : public StoreBelow {
 public:
  FolderStore(std::string directory, const std::string& agent, FetchLimits limits)
      : StoreBelow(std::move(directory), limits), incoming_(IncomingOf(agent)) {}

  bool shared() const override { return true; }

  absl::StatusOr<std::string> Obtain(const FetchOrder& order,
                                     const std::function<bool(double)>& wait,
                                     const FetchNote& note) const override {
    if (order.of_trial) return TakeOver(order, note, incoming_);
    const std::string folder = FolderOf(order.what.study, order.what.trial_number);
    const absl::Status here = CheckWhatIsHere(order, folder, note);
    if (!here.ok() && !absl::IsDataLoss(here)) return here;
    double pause_s = kFirstLook_s;
    for (int look = here.ok() ? 1 : kLooksIntoSharedFolder;; ++look) {
      const absl::StatusOr<CheckpointManifest> manifest = ReadManifest(folder, order.what.name);
      if (manifest.ok() &&
          (order.fingerprint.empty() || order.fingerprint == manifest->fingerprint)) {
        ESPALIER_RETURN_IF_ERROR(Settle(folder, order.what.name, *manifest));
        return absl::StrCat(folder, "/", order.what.name);
      }
      // The source is a node that has a disk of its own.
      if (look == kLooksIntoSharedFolder && !order.sources.empty()) {
        ESPALIER_RETURN_IF_ERROR(
            Besides(FetchCheckpoint(order, folder, limits_, wait, note, incoming_), here));
        return absl::StrCat(folder, "/", order.what.name);
      }
      if (look == kLooksIntoSharedFolder) {
        return Besides(
            absl::NotFoundError(absl::StrCat(
                "checkpoint ", order.what.name, " of trial ", order.what.trial_number, " in study ",
                order.what.study, " is not in the shared folder ", directory_, ": ",
                manifest.ok() ? "it has another one of that name"
                              : std::string(manifest.status().message()))),
            here);
      }
      if (!wait(pause_s)) return absl::CancelledError("given up");
      pause_s *= 2;
    }
  }

 private:
  const std::string incoming_;
};

std::optional<std::string> ReadSmallFile(const std::string& path) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.open()) return std::nullopt;
  std::string text(2 * kMarkBytes, '\0');
  const ssize_t got = read(file.get(), text.data(), text.size());
  if (got != static_cast<ssize_t>(text.size())) return std::nullopt;
  return text;
}

absl::Status CannotMark(const std::string& path, const char* why) {
  return absl::FailedPreconditionError(
      absl::StrCat("shared folder: cannot write ", path, ": ", why,
                   "; it should be a folder that the agents of all machines can write to"));
}

std::vector<std::pair<std::int64_t, std::string>> ByStep(const fs::path& folder) {
  std::vector<std::pair<std::int64_t, std::string>> files;
  std::error_code error;
  for (const auto& entry : FolderEntries(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (const auto step = StepOfCheckpoint(name)) files.emplace_back(*step, name);
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

std::unique_ptr<CheckpointStore> OwnDisk(std::string directory, FetchLimits limits) {
  return std::make_unique<DiskStore>(std::move(directory), limits);
}

std::unique_ptr<CheckpointStore> SharedFolder(std::string directory, const std::string& agent,
                                              FetchLimits limits) {
  return std::make_unique<FolderStore>(std::move(directory), agent, limits);
}

absl::StatusOr<std::string> MarkOfSharedFolder(const std::string& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  const std::string path = absl::StrCat(directory, "/", kMarkFile);
  if (error) return CannotMark(path, error.message().c_str());
  const std::string mark = RandomHexadecimal(kMarkBytes);
  // Whole or not at all, and of several agents that begin at once one wins.
  const std::string fresh = absl::StrCat(path, ".", mark);
  {
    const FileDescriptor file(open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!file.open()) return CannotMark(fresh, strerror(errno));
    if (write(file.get(), mark.data(), mark.size()) != std::ssize(mark) || fsync(file.get()) != 0) {
      return CannotMark(fresh, strerror(errno));
    }
  }
  const bool linked = link(fresh.c_str(), path.c_str()) == 0 || errno == EEXIST;
  const std::string why = strerror(errno);
  fs::remove(fresh, error);
  if (!linked) return CannotMark(path, why.c_str());
  // Another mark after a loss of power would make another folder of it.
  if (const int unsynced = SyncPath(directory); unsynced != 0) {
    return CannotMark(path, strerror(unsynced));
  }
  if (const int unsynced = SyncFoldersAbove(directory); unsynced != 0) {
    return CannotMark(path, strerror(unsynced));
  }
  const std::optional<std::string> there = ReadSmallFile(path);
  if (!there) return CannotMark(path, "what is in it cannot be read");
  return *there;
}

std::vector<StoredCheckpoint> StoredCheckpoints(const std::string& directory, std::size_t most) {
  std::vector<std::pair<fs::file_time_type, std::vector<StoredCheckpoint>>> trials;
  std::error_code error;
  for (const auto& study : FolderEntries(directory, error)) {
    std::error_code ignored;
    for (const auto& trial : FolderEntries(study.path(), ignored)) {
      const std::optional<std::int64_t> number = TrialNumberOf(trial.path().filename().string());
      if (!number) continue;
      const fs::path folder = trial.path() / "checkpoints";
      std::vector<StoredCheckpoint> stored;
      for (const auto& [step, name] : ByStep(folder)) {
        stored.push_back({{StudyOfFolder(study.path().filename().string()), *number, name},
                          step,
                          IsFetched(folder, name)});
      }
      const CheckpointName all{StudyOfFolder(study.path().filename().string()), *number, ""};
      if (stored.empty()) stored.push_back({all, 0, IsFetched(folder, "")});
      if (fs::exists(folder, ignored))
        trials.emplace_back(fs::last_write_time(folder, ignored), stored);
    }
  }
  std::stable_sort(trials.begin(), trials.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<StoredCheckpoint> all;
  for (const auto& [when, stored] : trials) all.insert(all.end(), stored.begin(), stored.end());
  if (all.size() > most) all.resize(most);
  return all;
}

void RemoveOldCopies(const std::string& folder) {
  auto files = ByStep(folder);
  std::erase_if(files, [&](const auto& file) { return !IsFetched(folder, file.second); });
  for (std::size_t i = 0; i + kKeptCopies < files.size(); ++i) RemoveCopy(folder, files[i].second);
}

void RemoveCopies(const std::string& folder) {
  std::error_code ignored;  // what stays does no harm
  fs::remove_all(fs::path(folder).parent_path() / kIncoming, ignored);
  if (IsFetched(folder, "")) {
    fs::remove_all(folder, ignored);
    return;
  }
  for (const auto& [step, name] : ByStep(folder)) {
    if (IsFetched(folder, name)) RemoveCopy(folder, name);
  }
  RemoveDamaged(folder);
  fs::remove(folder, ignored);
}

void KeepCopiesAsOwn(const std::string& folder) {
  std::error_code ignored;
  std::vector<fs::path> marks;
  for (const auto& entry : FolderEntries(folder, ignored)) {
    if (entry.path().filename().string().starts_with(kCopyMark)) marks.push_back(entry.path());
  }
  for (const fs::path& mark : marks) fs::remove(mark, ignored);
}

}  // namespace espalier
