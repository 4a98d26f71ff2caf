#include "tuner/storage/upkeep.h"

#include <filesystem>
#include <memory>

#include "absl/strings/str_cat.h"
#include "tuner/storage/database.h"
#include "tuner/storage/database_file.h"
#include "tuner/storage/deleted_studies.h"
#include "tuner/storage/new_file.h"
#include "tuner/storage/schema.h"

namespace espalier {

namespace {

std::int64_t BytesOf(const std::string& path) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  return error ? 0 : static_cast<std::int64_t>(bytes);
}

std::int64_t BytesWithLog(const std::string& path) {
  return BytesOf(path) + BytesOf(path + "-wal");
}

// An older one will do: before an upgrade is when people make copies.
absl::StatusOr<std::int64_t> OurVersion(Database& database) {
  ESPALIER_ASSIGN_OR_RETURN(const std::int64_t version, SchemaVersion(database));
  if (version > 0) return version;
  return absl::FailedPreconditionError(absl::StrCat(
      "database ", database.path(), ": is empty; give the path of an Espalier database"));
}

}  // namespace

absl::Status CheckSound(const std::string& path, const std::string& message) {
  ESPALIER_ASSIGN_OR_RETURN(const std::vector<Finding> findings, CheckDatabase(path));
  for (const Finding& finding : findings) {
    if (finding.ok) continue;
    return absl::DataLossError(
        absl::StrCat(message, " (", finding.point, ": ", finding.found, ")"));
  }
  return absl::OkStatus();
}

absl::Status CopyDatabase(const std::string& from, const std::string& to) {
  ESPALIER_RETURN_IF_ERROR(CheckDatabaseFile(from, /*read_only=*/true));
  ESPALIER_ASSIGN_OR_RETURN(const std::unique_ptr<Database> source,
                            Database::Open(from, /*read_only=*/true));
  ESPALIER_RETURN_IF_ERROR(OurVersion(*source).status());
  ESPALIER_ASSIGN_OR_RETURN(const std::unique_ptr<Database> copy,
                            Database::Open(to, /*read_only=*/false));
  return source->CopyTo(*copy);
}

absl::StatusOr<std::int64_t> BackUpDatabase(const std::string& from, const std::string& to) {
  const std::string source = CanonicalPath(from);
  ESPALIER_ASSIGN_OR_RETURN(NewFile file, NewFile::Begin(to));
  ESPALIER_RETURN_IF_ERROR(CopyDatabase(source, file.unfinished()));
  ESPALIER_RETURN_IF_ERROR(CheckSound(
      file.unfinished(), absl::StrCat("database ", source,
                                      ": a copy of it is not sound and was not kept; see `tuner "
                                      "db check` of the database")));
  ESPALIER_RETURN_IF_ERROR(file.Keep());
  return BytesOf(CanonicalPath(to));
}

absl::StatusOr<CompactedSizes> CompactDatabase(const std::string& path) {
  const std::string canonical = CanonicalPath(path);
  // As if to read: it must exist. As if to write: one must be allowed to.
  for (const bool read_only : {true, false}) {
    ESPALIER_RETURN_IF_ERROR(CheckDatabaseFile(canonical, read_only));
  }
  ESPALIER_ASSIGN_OR_RETURN(const ServiceLock lock, ServiceLock::Acquire(canonical));
  // What is damaged could lose more when it is written anew.
  ESPALIER_RETURN_IF_ERROR(CheckSound(
      canonical, absl::StrCat("database ", canonical, ": is not sound and was left as it is")));
  CompactedSizes sizes;
  sizes.before = BytesWithLog(canonical);
  {
    ESPALIER_ASSIGN_OR_RETURN(const std::unique_ptr<Database> database,
                              Database::Open(canonical, /*read_only=*/false));
    ESPALIER_ASSIGN_OR_RETURN(const std::int64_t version, OurVersion(*database));
    ESPALIER_RETURN_IF_ERROR(database->WriteLogAgain());
    if (version == kLatestSchema) ESPALIER_RETURN_IF_ERROR(DeletedStudies::RemoveAll(*database));
    ESPALIER_RETURN_IF_ERROR(database->Execute("VACUUM"));
    ESPALIER_ASSIGN_OR_RETURN(const std::int64_t busy,
                              database->QueryInteger("PRAGMA wal_checkpoint(TRUNCATE)"));
    if (busy != 0) {
      return absl::FailedPreconditionError(
          absl::StrCat("database ", canonical,
                       ": another program reads it, so that its log could not be emptied; nothing "
                       "is lost: close that program and try again"));
    }
  }
  sizes.after = BytesWithLog(canonical);
  return sizes;
}

}  // namespace espalier
