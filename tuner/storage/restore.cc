// A backup becomes the database again. What the service acknowledged since is lost, but not undone:
// people, programs and processes still hold ids and tokens of that time.

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/sync_path.h"
#include "tuner/storage/database.h"
#include "tuner/storage/database_file.h"
#include "tuner/storage/new_file.h"
#include "tuner/storage/rows.h"
#include "tuner/storage/schema.h"
#include "tuner/storage/upkeep.h"

namespace espalier {

namespace {

namespace fs = std::filesystem;

// At least so many ids and generations are left out.
constexpr std::int64_t kIdsLeftOut = 1'000'000'000;
constexpr std::int64_t kGenerationsLeftOut = 1'000'000;

absl::Status RefuseRestore(const std::string& path, const std::string& why) {
  return absl::FailedPreconditionError(absl::StrCat("database ", path, ": ", why));
}

// Ids go on from the clock's microseconds, which is behind all that any service gave, also one that
// went on from the same backup when it was restored before.
absl::Status SkipIds(Database& copy, Time now) {
  ESPALIER_ASSIGN_OR_RETURN(
      const std::int64_t highest,
      copy.QueryInteger("SELECT max((SELECT coalesce(max(id), 0) FROM studies), "
                        "(SELECT coalesce(max(id), 0) FROM trials), "
                        "(SELECT coalesce(max(value), 0) FROM meta))"));
  const std::int64_t next = std::max(highest + kIdsLeftOut, now.us);
  for (const std::string_view key : {kLastStudy, kLastTrial, kReplicaIdsBelow, kReplicaIdsFrom}) {
    ESPALIER_ASSIGN_OR_RETURN(
        Statement skip, copy.Prepare("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)"));
    ESPALIER_RETURN_IF_ERROR(skip.Bind(key, next).Run());
  }
  // In seconds: a trial's group does not change more often, and checkpoints have it in their names.
  constexpr std::int64_t kMicro = 1'000'000;
  ESPALIER_ASSIGN_OR_RETURN(Statement generations,
                            copy.Prepare("UPDATE trials SET generation = max(generation + ?, ?) "
                                         "WHERE state NOT IN ('COMPLETE', 'PRUNED', 'FAIL')"));
  return generations.Bind(kGenerationsLeftOut, now.us / kMicro).Run();
}

absl::StatusOr<std::int64_t> RevokeTokens(Database& copy, Time now) {
  ESPALIER_ASSIGN_OR_RETURN(Statement revoke,
                            copy.Prepare("UPDATE tokens SET removed_us = ? WHERE removed_us = 0"));
  ESPALIER_RETURN_IF_ERROR(revoke.Bind(now).Run());
  return copy.Changes();
}

// Makes the copy one that a service can go on with; returns how many tokens were revoked.
absl::StatusOr<std::int64_t> MakeGoOn(const std::string& path, const RestoreOptions& options) {
  ESPALIER_ASSIGN_OR_RETURN(const std::unique_ptr<Database> copy,
                            Database::Open(path, /*read_only=*/false));
  ESPALIER_RETURN_IF_ERROR(PrepareSchema(*copy, /*read_only=*/false));
  std::int64_t revoked = 0;
  const absl::Status changed = copy->Transact([&]() -> absl::Status {
    ESPALIER_RETURN_IF_ERROR(SkipIds(*copy, options.now));
    if (options.keep_tokens) return absl::OkStatus();
    ESPALIER_ASSIGN_OR_RETURN(revoked, RevokeTokens(*copy, options.now));
    return absl::OkStatus();
  });
  if (!changed.ok()) return changed;
  return revoked;
}

// Writes the log of a database that nobody closed back into it, so that no loss of power finds one
// without the other while they are moved. What is too damaged for that is moved as it is.
void PutLogBack(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path + "-wal", error)) return;
  const auto database = Database::Open(path, /*read_only=*/false);
  if (!database.ok() || !(*database)->WriteLogAgain().ok()) return;
  (*database)->Execute("PRAGMA wal_checkpoint(TRUNCATE)").IgnoreError();
}

// A log that came back with a loss of power would be taken for that of the copy.
absl::Status SyncThatLogIsGone(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  const int error = SyncPath(folder);
  if (error == 0) return absl::OkStatus();
  return RefuseRestore(path, absl::StrCat("its folder ", folder, " cannot be synced: ",
                                          std::generic_category().message(error)));
}

// Gives the database another name, and its log, which is nothing without it: where the database is
// gone, it goes too. Returns that name, "" if there is none.
absl::StatusOr<std::string> MoveAway(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error)) {
    for (const char* beside : {"-wal", "-journal", "-shm"}) fs::remove(path + beside, error);
    ESPALIER_RETURN_IF_ERROR(SyncThatLogIsGone(path));
    return "";
  }
  PutLogBack(path);
  const std::string former = FreeName(path + ".replaced");
  const auto refuse = [&path](const char* beside, const char* what) {
    return RefuseRestore(path, absl::StrCat(path, beside, " cannot be ", what, ": ",
                                            std::generic_category().message(errno)));
  };
  // Until the copy takes its name, the file keeps it too: a service that is started meanwhile finds
  // it locked, and makes no empty one.
  if (link(path.c_str(), former.c_str()) != 0) return refuse("", "linked");
  for (const char* beside : {"-wal", "-journal"}) {
    if (std::rename((path + beside).c_str(), (former + beside).c_str()) == 0 || errno == ENOENT) {
      continue;
    }
    unlink(former.c_str());
    return refuse(beside, "renamed");
  }
  if (const absl::Status gone = SyncThatLogIsGone(path); !gone.ok()) {
    for (const char* beside : {"-wal", "-journal"}) {
      std::rename((former + beside).c_str(), (path + beside).c_str());
    }
    unlink(former.c_str());
    return gone;
  }
  fs::remove(path + "-shm", error);  // is made from the log
  return former;
}

}  // namespace

absl::StatusOr<RestoredDatabase> RestoreDatabase(const std::string& backup, const std::string& path,
                                                 const RestoreOptions& options) {
  const std::string from = CanonicalPath(backup);
  const std::string to = CanonicalPath(path);
  std::error_code error;
  if (fs::equivalent(from, to, error)) {
    return RefuseRestore(to, "is the backup itself; give the path at which a service has it");
  }
  const fs::file_status there = fs::status(to, error);
  if (fs::exists(there) && !fs::is_regular_file(there)) {
    return RefuseRestore(to, "is not a file; give the path of a database");
  }
  std::optional<ServiceLock> lock;
  if (fs::exists(there)) {
    ESPALIER_ASSIGN_OR_RETURN(ServiceLock acquired, ServiceLock::Acquire(to));
    lock.emplace(std::move(acquired));
  }
  ESPALIER_ASSIGN_OR_RETURN(NewFile file, NewFile::BeginInPlaceOf(to));
  ESPALIER_RETURN_IF_ERROR(CopyDatabase(from, file.unfinished()));
  const std::string damaged =
      absl::StrCat("backup ", from, ": is not sound, and was not restored; see `tuner db check`");
  ESPALIER_RETURN_IF_ERROR(CheckSound(file.unfinished(), damaged));
  RestoredDatabase restored;
  ESPALIER_ASSIGN_OR_RETURN(restored.tokens_revoked, MakeGoOn(file.unfinished(), options));
  ESPALIER_RETURN_IF_ERROR(CheckSound(file.unfinished(), damaged));
  ESPALIER_RETURN_IF_ERROR(file.CheckLogIsWrittenBack());
  ESPALIER_RETURN_IF_ERROR(options.before_it_is_there());
  ESPALIER_ASSIGN_OR_RETURN(restored.former, MoveAway(to));
  ESPALIER_RETURN_IF_ERROR(restored.former.empty() ? file.Keep() : file.Replace());
  restored.bytes = static_cast<std::int64_t>(fs::file_size(to, error));
  return restored;
}

}  // namespace espalier
