#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <string>

namespace espalier {

// What the newest schemas added, undone: from 10 to 9, from 9 to 8, and from 8 to 7.
inline const std::string kUndoControlSql =
    "ALTER TABLE trials DROP COLUMN held; ALTER TABLE trials DROP COLUMN cancelled; "
    "ALTER TABLE trials DROP COLUMN environment; ";
inline const std::string kUndoTokensSql = "DROP TABLE tokens; ";
inline const std::string kUndoCopiesSql =
    "DROP TABLE checkpoint_copies; ALTER TABLE trials DROP COLUMN checkpoint_step; "
    "ALTER TABLE trials DROP COLUMN checkpoint_name; "
    "ALTER TABLE trials DROP COLUMN checkpoint_fingerprint; "
    "ALTER TABLE trials DROP COLUMN checkpoint_us; "
    "ALTER TABLE trials DROP COLUMN checkpoint_generation; ";

// What nobody but SQLite looks at: statements past all checks of ours.
inline void ExecuteRawIn(const std::string& file, const std::string& sql) {
  sqlite3* connection = nullptr;
  ASSERT_EQ(sqlite3_open(file.c_str(), &connection), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(connection, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
      << sqlite3_errmsg(connection);
  sqlite3_close(connection);
}

}  // namespace espalier
