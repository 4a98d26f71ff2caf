#include <spdlog/spdlog.h>

#include <filesystem>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/sync_path.h"
#include "tuner/storage/change_writer.h"
#include "tuner/storage/database.h"
#include "tuner/storage/database_file.h"
#include "tuner/storage/deleted_studies.h"
#include "tuner/storage/load.h"
#include "tuner/storage/new_file.h"
#include "tuner/storage/schema.h"
#include "tuner/storage/storage.h"

namespace espalier {

namespace {

// Members are destroyed from the last to the first: statements before their connection, and the
// lock only when the connection has written its log back.
class SqliteStorage : public Storage {
 public:
  SqliteStorage(std::optional<ServiceLock> lock, std::unique_ptr<Database> database,
                std::optional<ChangeWriter> writer, std::optional<DeletedStudies> deleted)
      : lock_(std::move(lock)),
        database_(std::move(database)),
        writer_(std::move(writer)),
        deleted_(std::move(deleted)) {}

  // A command that only reads wants the whole record; a service keeps what is shown.
  absl::StatusOr<TunerState> Load() override {
    if (writer_) return LoadState(*database_);
    return LoadState(*database_, std::numeric_limits<std::size_t>::max());
  }

  absl::Status Commit(std::span<const Change> changes) override {
    if (!writer_) return ReadOnly();
    if (changes.empty()) return absl::OkStatus();
    ESPALIER_RETURN_IF_ERROR(CheckStillThere());
    return database_->Transact([&] { return Write(changes); });
  }

  absl::Status CommitSlices(const NextSlice& next) override {
    if (!writer_) return ReadOnly();
    ESPALIER_RETURN_IF_ERROR(CheckStillThere());
    return database_->Transact([&]() -> absl::Status {
      while (true) {
        ESPALIER_ASSIGN_OR_RETURN(const std::vector<Change> slice, next());
        if (slice.empty()) return absl::OkStatus();
        ESPALIER_RETURN_IF_ERROR(Write(slice));
      }
    });
  }

  absl::StatusOr<bool> CleanUp() override {
    if (!deleted_) return ReadOnly();
    return deleted_->RemoveSome();
  }

  absl::Status CheckStillThere() override {
    if (!lock_) return absl::OkStatus();
    absl::Status status = lock_->CheckStillThere();
    if (status.ok()) return status;
    // A file that was renamed, or has lost its log, gets what was acknowledged, and the one in its
    // place does not find a log that is not its own.
    database_->Execute("PRAGMA wal_checkpoint(TRUNCATE)").IgnoreError();
    return status;
  }

 private:
  absl::Status Write(std::span<const Change> changes) {
    for (const Change& change : changes) ESPALIER_RETURN_IF_ERROR(writer_->Write(change));
    return absl::OkStatus();
  }

  absl::Status ReadOnly() const {
    return absl::FailedPreconditionError(
        absl::StrCat("database ", database_->path(), ": was opened for reading only"));
  }

  std::optional<ServiceLock> lock_;
  std::unique_ptr<Database> database_;
  std::optional<ChangeWriter> writer_;     // absent: read only
  std::optional<DeletedStudies> deleted_;  // the same
};

// The process that wrote to it ended without closing it.
bool WasLeftOpen(const std::string& path) {
  std::error_code none;
  const auto bytes = std::filesystem::file_size(path + "-wal", none);
  return !none && bytes > 0;
}

// What a crash, or the disk that caused it, may have done to the file is found before it is served.
absl::Status CheckQuickly(Database& database) {
  const absl::StatusOr<std::string> found = database.QueryText("PRAGMA quick_check(1)");
  if (found.ok() && *found == "ok") return absl::OkStatus();
  if (!found.ok() && !absl::IsDataLoss(found.status())) return found.status();
  return absl::DataLossError(absl::StrCat(
      "database ", database.path(), ": was not closed by the service before, and is damaged (",
      found.ok() ? *found : std::string(found.status().message()), "); `tuner db restore BACKUP ",
      database.path(), "` puts a backup in its place, `tuner db check` tells more"));
}

// The log has been made by now, and with its name would go all that is committed to it. SQLite
// syncs the folder, too, but takes no notice where that fails.
absl::Status SyncNames(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const int error = SyncPath(folder);
  if (error == 0) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("database ", path, ": its folder ", folder,
                   " cannot be synced: ", std::generic_category().message(error)));
}

// A migration cannot be taken back: the file as it was stays beside it.
absl::Status KeepFormerSchema(Database& database) {
  ESPALIER_ASSIGN_OR_RETURN(const std::int64_t version, SchemaVersion(database));
  if (version == 0 || version == kLatestSchema) return absl::OkStatus();
  const std::string name = FreeName(absl::StrCat(database.path(), ".schema-", version));
  ESPALIER_ASSIGN_OR_RETURN(NewFile file, NewFile::Begin(name));
  {
    ESPALIER_ASSIGN_OR_RETURN(const std::unique_ptr<Database> copy,
                              Database::Open(file.unfinished(), /*read_only=*/false));
    ESPALIER_RETURN_IF_ERROR(database.CopyTo(*copy));
  }
  ESPALIER_RETURN_IF_ERROR(file.Keep());
  spdlog::info("database {}: is brought from schema {} to {}; {} is a copy of it as it was",
               database.path(), version, kLatestSchema, name);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Storage>> OpenSqliteStorage(const std::string& path,
                                                           bool read_only) {
  const std::string canonical = CanonicalPath(path);
  ESPALIER_RETURN_IF_ERROR(CheckDatabaseFile(canonical, read_only));
  std::optional<ServiceLock> lock;
  if (!read_only) {
    ESPALIER_ASSIGN_OR_RETURN(ServiceLock acquired, ServiceLock::Acquire(canonical));
    lock.emplace(std::move(acquired));
    WarnIfOthersRead(canonical);
  }
  const bool left_open = !read_only && WasLeftOpen(canonical);
  ESPALIER_ASSIGN_OR_RETURN(std::unique_ptr<Database> database,
                            Database::Open(canonical, read_only));
  if (left_open) ESPALIER_RETURN_IF_ERROR(CheckQuickly(*database));
  if (!read_only) ESPALIER_RETURN_IF_ERROR(KeepFormerSchema(*database));
  if (left_open) ESPALIER_RETURN_IF_ERROR(database->WriteLogAgain());
  ESPALIER_RETURN_IF_ERROR(PrepareSchema(*database, read_only));
  std::optional<ChangeWriter> writer;
  std::optional<DeletedStudies> deleted;
  if (!read_only) {
    ESPALIER_ASSIGN_OR_RETURN(ChangeWriter made, ChangeWriter::Make(*database));
    writer.emplace(std::move(made));
    ESPALIER_ASSIGN_OR_RETURN(DeletedStudies remover, DeletedStudies::Make(*database));
    deleted.emplace(std::move(remover));
    ESPALIER_RETURN_IF_ERROR(SyncNames(canonical));
    lock->KeepLog();
    lock->ShowOwner();
  }
  return std::make_unique<SqliteStorage>(std::move(lock), std::move(database), std::move(writer),
                                         std::move(deleted));
}

}  // namespace espalier
