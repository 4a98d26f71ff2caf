#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace espalier {

// What can be done to a database file besides serving it. Errors are those of OpenSqliteStorage.

// One point that was looked at.
struct Finding {
  std::string point;
  bool ok = false;
  std::string found;  // if not ok: all of it, a line each
};

// Checks whether the file is whole: SQLite's structure, references between rows, the schema, and
// whether all that is stored can be loaded and makes sense. Writes nothing, and works while a
// service has the file open. The status is only for files that are no database of ours at all.
absl::StatusOr<std::vector<Finding>> CheckDatabase(const std::string& path);

// Whether all of that is well; else DATA_LOSS, with the message and the first finding.
absl::Status CheckSound(const std::string& path, const std::string& message);

// Copies the database as it is at one moment to a new or empty file, which may be of an older
// schema, and which nobody has checked.
absl::Status CopyDatabase(const std::string& from, const std::string& to);

// Copies the database as it is at one moment, even while a service goes on writing. The copy is
// checked and synced before it appears under its name, which must be free. Returns its size in
// bytes.
absl::StatusOr<std::int64_t> BackUpDatabase(const std::string& from, const std::string& to);

struct RestoreOptions {
  Time now;
  bool keep_tokens = false;  // of users and agents: good again as they were in the backup
  // Called once the backup is found sound and before it takes its place; an error stops it.
  std::function<absl::Status()> before_it_is_there = [] { return absl::OkStatus(); };
};

struct RestoredDatabase {
  std::int64_t bytes = 0;
  std::string former;  // where the database is that was there; empty: none was
  std::int64_t tokens_revoked = 0;
};

// Puts a copy of the backup in the place of a database, which is kept under another name. What the
// service gave away after the backup stays void: ids of studies, trials and replicas and the
// generations of trials go on behind all that may have been given, replicas that still run are
// ended, and tokens are revoked, one of which may have been revoked after the backup. No service
// may have the database open.
absl::StatusOr<RestoredDatabase> RestoreDatabase(const std::string& backup, const std::string& path,
                                                 const RestoreOptions& options);

struct CompactedSizes {
  std::int64_t before = 0;  // bytes, with the write-ahead log
  std::int64_t after = 0;
};

// Writes the file anew without the room that deleted rows left, and empties its log. No service may
// have it open. Needs as much free disk as the file takes.
absl::StatusOr<CompactedSizes> CompactDatabase(const std::string& path);

struct SetAsideStudy {
  std::int64_t id = 0;
  std::string name;
  std::int64_t trials = 0;
  std::string why;  // it does not load: the record, and what is wrong with it
};

// Takes the studies that cannot be loaded, for which a service does not start, out of the database
// and into the new file `to`, whole and as they are. The others stay, and load. No service may have
// the file open. Nothing is changed and no file made where all loads (none is returned), or where
// what is wrong belongs to no study (DATA_LOSS says what).
absl::StatusOr<std::vector<SetAsideStudy>> SetAsideStudies(const std::string& path,
                                                           const std::string& to);

}  // namespace espalier
