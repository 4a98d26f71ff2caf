#include "tuner/storage/schema.h"

#include <iterator>

#include "absl/strings/str_cat.h"

namespace espalier {

namespace {

// "Espl", in the header of the file: file(1) shows it.
constexpr std::int64_t kApplicationId = 0x4573706c;

// The schema as the rows of this table leave it: row n takes a database of version n to n + 1, and
// PRAGMA user_version tells which one a file has. Rows are only ever added.
//
// Times are microseconds since the epoch, 0 for "not yet". Columns declared REAL hold eight bytes
// where SQLite would change the number (see Statement). studies.json is the study file with its
// search space inline; limits that were changed since are in columns of their own.
constexpr const char* kMigrations[] = {
    R"sql(
CREATE TABLE meta (
  key TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE nodes (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL
);

CREATE TABLE studies (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  json TEXT NOT NULL,
  max_trials INTEGER NOT NULL,
  time_limit_s REAL NOT NULL,
  state TEXT NOT NULL,
  reason TEXT NOT NULL,
  created_us INTEGER NOT NULL,
  ended_us INTEGER NOT NULL,
  active_s REAL NOT NULL,
  running_since_us INTEGER NOT NULL
);

CREATE TABLE decisions (
  study INTEGER NOT NULL REFERENCES studies (id),
  number INTEGER NOT NULL,
  at_us INTEGER NOT NULL,
  trial_number INTEGER NOT NULL,
  kind TEXT NOT NULL,
  from_slots INTEGER NOT NULL,
  to_slots INTEGER NOT NULL,
  reason TEXT NOT NULL,
  PRIMARY KEY (study, number)
) WITHOUT ROWID;

CREATE TABLE trials (
  id INTEGER PRIMARY KEY,
  study INTEGER NOT NULL REFERENCES studies (id),
  number INTEGER NOT NULL,
  parameters TEXT NOT NULL,
  created_us INTEGER NOT NULL,
  state TEXT NOT NULL,
  value REAL,
  started_us INTEGER NOT NULL,
  ended_us INTEGER NOT NULL,
  reason TEXT NOT NULL,
  last_output TEXT NOT NULL,
  generation INTEGER NOT NULL,
  restarts INTEGER NOT NULL,
  pinned_slots INTEGER NOT NULL,
  checkpoint TEXT NOT NULL,
  UNIQUE (study, number)
);

CREATE TABLE trial_values (
  trial INTEGER NOT NULL REFERENCES trials (id),
  step INTEGER NOT NULL,
  value REAL NOT NULL,
  progress REAL NOT NULL,
  at_us INTEGER NOT NULL,
  batch_size INTEGER NOT NULL,
  PRIMARY KEY (trial, step)
) WITHOUT ROWID;

CREATE TABLE spans (
  trial INTEGER NOT NULL REFERENCES trials (id),
  number INTEGER NOT NULL,
  from_us INTEGER NOT NULL,
  to_us INTEGER NOT NULL,
  slots TEXT NOT NULL,  -- node:index,node:index
  PRIMARY KEY (trial, number)
) WITHOUT ROWID;

CREATE TABLE resizes (
  trial INTEGER NOT NULL REFERENCES trials (id),
  number INTEGER NOT NULL,
  at_us INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  from_replicas INTEGER NOT NULL,
  to_replicas INTEGER NOT NULL,
  pause_s REAL NOT NULL,
  after_loss INTEGER NOT NULL,
  PRIMARY KEY (trial, number)
) WITHOUT ROWID;
)sql",
    R"sql(
ALTER TABLE resizes ADD COLUMN form_s REAL NOT NULL DEFAULT 0;
ALTER TABLE resizes ADD COLUMN broadcast_s REAL NOT NULL DEFAULT 0;
)sql",
    R"sql(
-- Nodes that a user wants emptied, and by when.
CREATE TABLE drained_nodes (
  node INTEGER PRIMARY KEY REFERENCES nodes (id),
  ends_us INTEGER NOT NULL
);
)sql",
    R"sql(
-- Trials that clients run by themselves, and attributes of all studies and trials.
CREATE TABLE study_attributes (
  study INTEGER NOT NULL REFERENCES studies (id),
  system INTEGER NOT NULL,
  key TEXT NOT NULL,
  value TEXT NOT NULL,  -- JSON as it was given
  PRIMARY KEY (study, system, key)
) WITHOUT ROWID;

CREATE TABLE trial_attributes (
  trial INTEGER NOT NULL REFERENCES trials (id),
  system INTEGER NOT NULL,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (trial, system, key)
) WITHOUT ROWID;

-- What clients drew parameters from. `kind` is equal where distributions may stand side by side.
CREATE TABLE suggestions (
  study INTEGER NOT NULL REFERENCES studies (id),
  number INTEGER NOT NULL,
  name TEXT NOT NULL,
  distribution TEXT NOT NULL,
  kind TEXT NOT NULL,
  PRIMARY KEY (study, number)
) WITHOUT ROWID;

CREATE TABLE suggested (
  trial INTEGER NOT NULL REFERENCES trials (id),
  position INTEGER NOT NULL,
  suggestion INTEGER NOT NULL,
  value REAL NOT NULL,
  PRIMARY KEY (trial, position)
) WITHOUT ROWID;

-- Final values of the second direction and further ones, from 0.
CREATE TABLE other_values (
  trial INTEGER NOT NULL REFERENCES trials (id),
  number INTEGER NOT NULL,
  value REAL NOT NULL,
  PRIMARY KEY (trial, number)
) WITHOUT ROWID;
)sql",
    R"sql(
-- Studies whose rows are still being removed, a few at a time; nobody sees them any more. Their
-- names are free: the column holds a blob.
CREATE TABLE deleted_studies (
  study INTEGER PRIMARY KEY REFERENCES studies (id)
);
)sql",
    R"sql(
-- Further figures that trials told with their values.
CREATE TABLE extra_figures (
  trial INTEGER NOT NULL REFERENCES trials (id),
  step INTEGER NOT NULL,
  name TEXT NOT NULL,
  value REAL NOT NULL,
  PRIMARY KEY (trial, step, name)
) WITHOUT ROWID;
)sql",
    R"sql(
-- By which the pool is divided, where a client has said so: a row for each option, and one with an
-- empty option for the policy as such.
CREATE TABLE pool_policy (
  option TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  value REAL NOT NULL
) WITHOUT ROWID;
)sql",
    R"sql(
-- Which checkpoint is the newest, whatever its path, and which one each node has.
ALTER TABLE trials ADD COLUMN checkpoint_step INTEGER NOT NULL DEFAULT 0;
ALTER TABLE trials ADD COLUMN checkpoint_name TEXT NOT NULL DEFAULT '';
ALTER TABLE trials ADD COLUMN checkpoint_fingerprint TEXT NOT NULL DEFAULT '';
ALTER TABLE trials ADD COLUMN checkpoint_us INTEGER NOT NULL DEFAULT 0;
ALTER TABLE trials ADD COLUMN checkpoint_generation INTEGER NOT NULL DEFAULT 0;

CREATE TABLE checkpoint_copies (
  trial INTEGER NOT NULL REFERENCES trials (id),
  node INTEGER NOT NULL REFERENCES nodes (id),
  step INTEGER NOT NULL,
  name TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  saved_us INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  fetched INTEGER NOT NULL,
  folder TEXT NOT NULL,  -- that machines share; empty: the node's own disk
  PRIMARY KEY (trial, node)
) WITHOUT ROWID;
)sql",
    R"sql(
-- Who is let in: hashes of secrets.
CREATE TABLE tokens (
  id TEXT PRIMARY KEY,
  hash TEXT NOT NULL,
  role TEXT NOT NULL,
  name TEXT NOT NULL,
  created_us INTEGER NOT NULL,
  expires_us INTEGER NOT NULL,
  removed_us INTEGER NOT NULL
) WITHOUT ROWID;
)sql",
    R"sql(
-- What a client has said of a trial that it enqueued, which were system attributes and the first
-- word of a reason. An environment is an object of texts; empty: none.
ALTER TABLE trials ADD COLUMN held INTEGER NOT NULL DEFAULT 0;
ALTER TABLE trials ADD COLUMN cancelled INTEGER NOT NULL DEFAULT 0;
ALTER TABLE trials ADD COLUMN environment TEXT NOT NULL DEFAULT '';
UPDATE trials SET held = 1 WHERE id IN (SELECT trial FROM trial_attributes
  WHERE system = 1 AND key = 'espalier:held' AND value = 'true');
UPDATE trials SET cancelled = 1 WHERE state = 'FAIL' AND substr(reason, 1, 9) = 'cancelled';
UPDATE trials SET environment = (SELECT value FROM trial_attributes
    WHERE trial = trials.id AND system = 1 AND key = 'espalier:environment')
  WHERE id IN (SELECT trial FROM trial_attributes
    WHERE system = 1 AND key = 'espalier:environment');
DELETE FROM trial_attributes
  WHERE system = 1 AND key IN ('espalier:held', 'espalier:environment');
)sql",
    R"sql(
-- What a trial last told of how it trains; 0 is not written. See TakeOverFigures.
CREATE TABLE figures (
  trial INTEGER NOT NULL REFERENCES trials (id),
  name TEXT NOT NULL,
  value REAL NOT NULL,
  PRIMARY KEY (trial, name)
) WITHOUT ROWID;
)sql",
    R"sql(
-- What nodes are and cost, in the order in which their agents told it.
CREATE TABLE node_terms (
  node INTEGER NOT NULL REFERENCES nodes (id),
  number INTEGER NOT NULL,
  since_us INTEGER NOT NULL,
  slots INTEGER NOT NULL,
  gpu_type TEXT NOT NULL,
  spot INTEGER NOT NULL,
  price_per_hour REAL NOT NULL,
  PRIMARY KEY (node, number)
) WITHOUT ROWID;
)sql",
    R"sql(
-- Replicas that were to join the trial's group and failed, one after the other, and what became of
-- the last one.
ALTER TABLE trials ADD COLUMN joins_failed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE trials ADD COLUMN joins_work_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE trials ADD COLUMN join_failure TEXT NOT NULL DEFAULT '';
ALTER TABLE trials ADD COLUMN join_failed_us INTEGER NOT NULL DEFAULT 0;
ALTER TABLE trials ADD COLUMN join_failed_step INTEGER NOT NULL DEFAULT 0;
)sql",
    R"sql(
-- What the ranks of a trial's program have reported, as far as it is kept, and up to which step
-- they were told to go on, and from which to stop; -1: none.
ALTER TABLE trials ADD COLUMN ranks_go_on INTEGER NOT NULL DEFAULT -1;
ALTER TABLE trials ADD COLUMN ranks_stop INTEGER NOT NULL DEFAULT -1;
CREATE TABLE rank_values (
  trial INTEGER NOT NULL REFERENCES trials (id),
  step INTEGER NOT NULL,
  rank INTEGER NOT NULL,
  value REAL NOT NULL,
  PRIMARY KEY (trial, step, rank)
) WITHOUT ROWID;
)sql",
    R"sql(
-- Up to which step a plain program was told not to save and end, and from which to do so; -1: none.
ALTER TABLE trials ADD COLUMN saving_go_on INTEGER NOT NULL DEFAULT -1;
ALTER TABLE trials ADD COLUMN saving_stop INTEGER NOT NULL DEFAULT -1;
)sql",
    R"sql(
-- What was known when a decision was made and when a value was reported, and the newest of when
-- nodes came and went. Figures are an object; empty: none.
ALTER TABLE decisions ADD COLUMN figures TEXT NOT NULL DEFAULT '';
ALTER TABLE trial_values ADD COLUMN promise REAL NOT NULL DEFAULT 0;
ALTER TABLE trial_values ADD COLUMN goodput REAL NOT NULL DEFAULT 0;
CREATE TABLE node_events (
  number INTEGER PRIMARY KEY,
  node INTEGER NOT NULL REFERENCES nodes (id),
  up INTEGER NOT NULL,
  at_us INTEGER NOT NULL,
  slots INTEGER NOT NULL,
  gpu_type TEXT NOT NULL,
  spot INTEGER NOT NULL,
  price_per_hour REAL NOT NULL,
  why TEXT NOT NULL
);
)sql",
    R"sql(
-- What the study's sampler was told when it drew the trial's parameters; empty: it drew none.
ALTER TABLE trials ADD COLUMN draw TEXT NOT NULL DEFAULT '';
)sql",
    R"sql(
-- Of a clone, as "3 0 120 FINGERPRINT": the number of the trial with whose checkpoint it begins,
-- that of the first of its line, and the checkpoint's step and fingerprint; empty: it is none.
ALTER TABLE trials ADD COLUMN lineage TEXT NOT NULL DEFAULT '';
)sql",
};
constexpr std::int64_t kLatestVersion = std::ssize(kMigrations);
static_assert(kLatestVersion == kLatestSchema);
// The first version that keeps a figure as a row.
constexpr std::int64_t kFiguresByName = 11;

absl::Status RefuseSchema(const Database& database, std::string_view why) {
  return absl::FailedPreconditionError(
      absl::StrCat("database ", database.path(), ": ", std::string(why)));
}

// Versions 2 to 10 had the figures of a trial as a row of a table, with a column of its name for
// each. The migration takes them from the columns that are there, so that it names no figure.
constexpr char kFigureColumns[] =
    "SELECT name FROM pragma_table_info('figures') WHERE name <> 'trial'";

// Ahead of the migrations: makes room for the new table, and answers with what is to be run when it
// is there.
absl::StatusOr<std::string> TakeOverFigures(Database& database) {
  std::string sql;
  {
    ESPALIER_ASSIGN_OR_RETURN(Statement column, database.Prepare(kFigureColumns));
    while (true) {
      ESPALIER_ASSIGN_OR_RETURN(const bool found, column.Step());
      if (!found) break;
      const std::string name = column.Text(0);
      absl::StrAppend(&sql, "INSERT INTO figures SELECT trial, '", name, "', \"", name,
                      "\" FROM former_figures WHERE \"", name, "\" <> 0;");
    }
  }
  if (sql.empty()) return sql;
  ESPALIER_RETURN_IF_ERROR(database.Execute("ALTER TABLE figures RENAME TO former_figures"));
  return sql + "DROP TABLE former_figures;";
}

absl::Status Migrate(Database& database, std::int64_t from) {
  return database.Transact([&database, from]() -> absl::Status {
    std::string take_over;
    if (from < kFiguresByName) {
      ESPALIER_ASSIGN_OR_RETURN(take_over, TakeOverFigures(database));
    }
    std::string sql;
    for (std::int64_t version = from; version < kLatestVersion; ++version) {
      absl::StrAppend(&sql, kMigrations[version]);
    }
    absl::StrAppend(&sql, take_over, "PRAGMA application_id = ", kApplicationId,
                    "; PRAGMA user_version = ", kLatestVersion, ";");
    return database.Execute(sql.c_str());
  });
}

}  // namespace

absl::StatusOr<std::int64_t> SchemaVersion(Database& database) {
  ESPALIER_ASSIGN_OR_RETURN(const std::int64_t id, database.QueryInteger("PRAGMA application_id"));
  ESPALIER_ASSIGN_OR_RETURN(const std::int64_t version,
                            database.QueryInteger("PRAGMA user_version"));
  ESPALIER_ASSIGN_OR_RETURN(const std::int64_t tables,
                            database.QueryInteger("SELECT count(*) FROM sqlite_schema"));
  const bool empty = id == 0 && version == 0 && tables == 0;
  if (!empty && id != kApplicationId) {
    return RefuseSchema(database,
                        "is an SQLite database, but not one of Espalier's; give another path");
  }
  if (version > kLatestVersion) {
    return RefuseSchema(database, absl::StrCat("was written by a newer Espalier (schema ", version,
                                               ", this one knows ", kLatestVersion,
                                               "); use that version, or give another file"));
  }
  return version;
}

absl::Status PrepareSchema(Database& database, bool read_only) {
  ESPALIER_ASSIGN_OR_RETURN(const std::int64_t version, SchemaVersion(database));
  if (read_only) {
    if (version == 0)
      return RefuseSchema(database, "is empty; give the path of an Espalier database");
    if (version == kLatestVersion) return absl::OkStatus();
    return RefuseSchema(
        database,
        absl::StrCat("has the older schema ", version,
                     "; start a service on it once, which brings it up to ", kLatestVersion));
  }
  // The journal mode is part of the file, so it is set only now that the file is known to be ours.
  ESPALIER_ASSIGN_OR_RETURN(const std::string mode, database.QueryText("PRAGMA journal_mode=WAL"));
  if (mode != "wal") {
    return RefuseSchema(
        database, absl::StrCat("its file system allows no write-ahead log (journal mode ", mode,
                               "); use a local disk"));
  }
  ESPALIER_RETURN_IF_ERROR(database.Execute("PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;"));
  return version == kLatestVersion ? absl::OkStatus() : Migrate(database, version);
}

}  // namespace espalier
