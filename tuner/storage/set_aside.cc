// Studies that do not load are found in a copy of the database. What is left of the copy is they;
// only when that is safely on the disk are they marked as deleted in the database itself.

#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tuner/storage/database.h"
#include "tuner/storage/database_file.h"
#include "tuner/storage/deleted_studies.h"
#include "tuner/storage/load.h"
#include "tuner/storage/new_file.h"
#include "tuner/storage/rows.h"
#include "tuner/storage/schema.h"
#include "tuner/storage/upkeep.h"

namespace espalier {

namespace {

absl::Status MarkDeleted(Database& database, std::int64_t study) {
  for (const char* sql : {kFreeNameSql, kMarkDeletedSql}) {
    ESPALIER_ASSIGN_OR_RETURN(Statement statement, database.Prepare(sql));
    ESPALIER_RETURN_IF_ERROR(statement.Bind(study).Run());
  }
  return absl::OkStatus();
}

absl::StatusOr<SetAsideStudy> Describe(Database& database, const UnloadableRecord& record) {
  SetAsideStudy study{record.study.value, "", 0, record.text};
  ESPALIER_ASSIGN_OR_RETURN(
      Statement row,
      database.Prepare("SELECT name, (SELECT count(*) FROM trials WHERE study = studies.id) "
                       "FROM studies WHERE id = ?"));
  ESPALIER_ASSIGN_OR_RETURN(const bool found, row.Bind(study.id).Step());
  if (!found) return absl::DataLossError(absl::StrCat(record.text, ": there is no such study"));
  study.name = row.Text(0);
  study.trials = row.Integer(1);
  return study;
}

// Marks them in `copy` one after the other, until the rest loads.
absl::StatusOr<std::vector<SetAsideStudy>> FindThoseThatDoNotLoad(Database& copy) {
  std::vector<SetAsideStudy> found;
  std::set<std::int64_t> marked;
  while (true) {
    const absl::Status status = LoadState(copy).status();
    if (status.ok()) return found;
    const std::optional<UnloadableRecord> record = UnloadableRecordOf(status);
    // What marking does not mend would be found for ever.
    if (!record || !marked.insert(record->study.value).second) return status;
    ESPALIER_ASSIGN_OR_RETURN(SetAsideStudy study, Describe(copy, *record));
    ESPALIER_RETURN_IF_ERROR(copy.Transact([&] { return MarkDeleted(copy, study.id); }));
    found.push_back(std::move(study));
  }
}

absl::Status SwapMarks(Database& copy, const std::vector<SetAsideStudy>& studies) {
  std::set<std::int64_t> others;
  ESPALIER_ASSIGN_OR_RETURN(
      Statement row,
      copy.Prepare("SELECT id FROM studies WHERE id NOT IN (SELECT study FROM deleted_studies)"));
  while (true) {
    ESPALIER_ASSIGN_OR_RETURN(const bool more, row.Step());
    if (!more) break;
    others.insert(row.Integer(0));
  }
  for (const std::int64_t id : others) ESPALIER_RETURN_IF_ERROR(MarkDeleted(copy, id));
  for (const SetAsideStudy& study : studies) {
    ESPALIER_ASSIGN_OR_RETURN(Statement unmark,
                              copy.Prepare("DELETE FROM deleted_studies WHERE study = ?"));
    ESPALIER_RETURN_IF_ERROR(unmark.Bind(study.id).Run());
    ESPALIER_ASSIGN_OR_RETURN(Statement name,
                              copy.Prepare("UPDATE studies SET name = ? WHERE id = ?"));
    ESPALIER_RETURN_IF_ERROR(name.Bind(study.name, study.id).Run());
  }
  return absl::OkStatus();
}

// What was marked stays, under its name, and what was not goes.
absl::Status KeepOnly(Database& copy, const std::vector<SetAsideStudy>& studies) {
  ESPALIER_RETURN_IF_ERROR(copy.Transact([&] { return SwapMarks(copy, studies); }));
  return DeletedStudies::RemoveAll(copy);
}

// Ids are never used again, so the highest are kept in mind, as when a user deletes a study.
absl::Status TakeOut(Database& database, const std::vector<SetAsideStudy>& studies) {
  return database.Transact([&]() -> absl::Status {
    for (const auto& [key, table] : {std::pair{kLastStudy, "studies"}, {kLastTrial, "trials"}}) {
      ESPALIER_ASSIGN_OR_RETURN(
          Statement last,
          database.Prepare(absl::StrCat("INSERT OR REPLACE INTO meta (key, value) SELECT ?1, "
                                        "max(coalesce((SELECT max(id) FROM ",
                                        table,
                                        "), 0), coalesce((SELECT value FROM meta WHERE key = ?1), "
                                        "0))")));
      ESPALIER_RETURN_IF_ERROR(last.Bind(key).Run());
    }
    for (const SetAsideStudy& study : studies) {
      ESPALIER_RETURN_IF_ERROR(MarkDeleted(database, study.id));
    }
    return absl::OkStatus();
  });
}

absl::Status CheckIsLatest(Database& database) {
  ESPALIER_ASSIGN_OR_RETURN(const std::int64_t version, SchemaVersion(database));
  if (version == kLatestSchema) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "database ", database.path(), ": has schema ", version, " and not ", kLatestSchema,
      "; start this release's `tuner serve` with it once, which brings it up to date"));
}

}  // namespace

absl::StatusOr<std::vector<SetAsideStudy>> SetAsideStudies(const std::string& path,
                                                           const std::string& to) {
  const std::string canonical = CanonicalPath(path);
  for (const bool read_only : {true, false}) {
    ESPALIER_RETURN_IF_ERROR(CheckDatabaseFile(canonical, read_only));
  }
  ESPALIER_ASSIGN_OR_RETURN(const ServiceLock lock, ServiceLock::Acquire(canonical));
  ESPALIER_ASSIGN_OR_RETURN(NewFile file, NewFile::Begin(to));
  ESPALIER_ASSIGN_OR_RETURN(const std::unique_ptr<Database> database,
                            Database::Open(canonical, /*read_only=*/false));
  ESPALIER_RETURN_IF_ERROR(CheckIsLatest(*database));
  ESPALIER_RETURN_IF_ERROR(database->WriteLogAgain());
  std::vector<SetAsideStudy> studies;
  {
    ESPALIER_ASSIGN_OR_RETURN(const std::unique_ptr<Database> copy,
                              Database::Open(file.unfinished(), /*read_only=*/false));
    ESPALIER_RETURN_IF_ERROR(database->CopyTo(*copy));
    ESPALIER_ASSIGN_OR_RETURN(studies, FindThoseThatDoNotLoad(*copy));
    if (studies.empty()) return studies;
    ESPALIER_RETURN_IF_ERROR(KeepOnly(*copy, studies));
  }
  ESPALIER_RETURN_IF_ERROR(file.Keep());
  ESPALIER_RETURN_IF_ERROR(TakeOut(*database, studies));
  return studies;
}

}  // namespace espalier
