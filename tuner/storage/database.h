#pragma once

// SQLite as the rest of the program sees it: statements that own themselves, doubles that keep
// their bits, and errors that name the file and the remedy.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/ids.h"
#include "base/status.h"

struct sqlite3;
struct sqlite3_stmt;

namespace espalier {

class Database;

// A prepared statement. Strings given to Bind must live until the statement has run. Columns count
// from 0 and are only valid between a Step that returned true and the next call.
//
// A double is stored as REAL, which people can read and compare, unless SQLite would change it: it
// turns NaN into NULL and -0.0 into 0.0. Those two are stored as the eight bytes of the number.
class Statement {
 public:
  Statement() = default;

  template <typename... Values>
  Statement& Bind(const Values&... values) {
    int index = 0;
    (BindOne(++index, values), ...);
    return *this;
  }
  // Returns true if there is a row, false at the end; after the end or an error the statement is
  // reset.
  absl::StatusOr<bool> Step();
  // For statements without rows.
  absl::Status Run();
  void Reset();

  bool IsNull(int column) const;
  bool IsNumber(int column) const;
  std::int64_t Integer(int column) const;
  int Int(int column) const { return static_cast<int>(Integer(column)); }
  double Double(int column) const;
  std::optional<double> OptionalDouble(int column) const;
  std::string Text(int column) const;
  Time Moment(int column) const { return Time{Integer(column)}; }

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  Statement(const Database& database, sqlite3_stmt* statement)
      : database_(&database), statement_(statement) {}

  void BindOne(int index, std::int64_t value);
  void BindOne(int index, int value) { BindOne(index, std::int64_t{value}); }
  void BindOne(int index, double value);
  void BindOne(int index, const std::optional<double>& value);
  void BindOne(int index, std::string_view value);
  void BindOne(int index, const std::string& value) { BindOne(index, std::string_view(value)); }
  void BindOne(int index, Time value) { BindOne(index, value.us); }
  template <typename Tag>
  void BindOne(int index, Id<Tag> id) {
    BindOne(index, id.value);
  }
  void Note(int code);

  const Database* database_ = nullptr;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int bind_error_ = 0;
};

// One connection, used by one thread at a time.
class Database {
 public:
  // Whoever only reads leaves the file and what is beside it as they were; beside a log that
  // somebody has left there may be its index afterwards (-shm), which says nothing.
  static absl::StatusOr<std::unique_ptr<Database>> Open(const std::string& path, bool read_only);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  absl::StatusOr<Statement> Prepare(std::string_view sql);
  // One or more statements without parameters; rows are dropped.
  absl::Status Execute(const char* sql);
  // The first column of the first row; all of the statement is run.
  absl::StatusOr<std::int64_t> QueryInteger(std::string_view sql);
  absl::StatusOr<std::string> QueryText(std::string_view sql);
  // Rolls a transaction back, if there still is one: after some errors SQLite ends it by itself.
  void Rollback();
  void ReleaseMemory();
  // Copies this database, as it is at one moment, to `copy`; others may go on writing here.
  absl::Status CopyTo(Database& copy);
  // Runs `body` in a transaction that is committed if it succeeds, and else leaves no trace.
  absl::Status Transact(const std::function<absl::Status()>& body);
  // Writes the write-ahead log that an ended process has left to the disk once more, as it is. If
  // that process ended because the disk did not take it, the system shows it all the same, and
  // counts it as written: what is committed behind it would go with it in a loss of power. After an
  // error the log stays when this is closed.
  absl::Status WriteLogAgain();
  // Rows that the last INSERT, UPDATE or DELETE touched.
  std::int64_t Changes() const;

  const std::string& path() const { return path_; }
  absl::Status Error(int code) const;

 private:
  struct Close {
    void operator()(sqlite3* connection) const;
  };
  explicit Database(std::string path) : path_(std::move(path)) {}

  std::string path_;
  bool only_reads_ = false;
  std::unique_ptr<sqlite3, Close> connection_;
};

}  // namespace espalier
