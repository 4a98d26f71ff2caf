#include "tuner/storage/database.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/file_descriptor.h"

namespace espalier {

namespace {

// Only a stranger (a person with the sqlite3 shell, a backup) can hold a lock: services exclude
// each other, and in WAL mode readers do not block.
constexpr int kBusyTimeout_ms = 5000;

bool SpaceIsGone(int code, int system_error) {
  return (code & 0xff) == SQLITE_FULL ||
         ((code & 0xff) == SQLITE_IOERR &&
          (system_error == ENOSPC || system_error == EDQUOT || system_error == EFBIG));
}

// SQLite would store these as NULL and as 0.0.
bool ChangesInSqlite(double value) {
  return std::isnan(value) || (value == 0 && std::signbit(value));
}

// A file that is not there yet is for nobody but its user; SQLite gives those that it makes beside
// it
// (-wal, -shm, -journal) the same mode. If it cannot be made SQLite says why. One that is there is
// not touched: closing it here would let go of SQLite's locks.
void MakeForThisUser(const std::string& path) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file >= 0) close(file);
}

// Whether the file is in WAL mode: https://sqlite.org/fileformat2.html, "File format version
// numbers".
bool IsInWalMode(const std::string& path) {
  constexpr std::size_t kReadVersion = 19;
  constexpr char kWal = 2;
  std::array<char, kReadVersion + 1> header{};
  std::ifstream(path, std::ios::binary).read(header.data(), header.size());
  return header[kReadVersion] == kWal;
}

// Whether its log has anything that SQLite has not written back, or not shown to have: the database
// is in use, or was left in the middle.
bool HasLog(const std::string& path) {
  std::error_code none;
  const auto bytes = std::filesystem::file_size(path + "-wal", none);
  return !none && bytes > 0;
}

// How SQLite reads a file, all of which is there, so that nothing is left beside it: in WAL mode it
// makes a -wal and a -shm even to read, and only one that may write removes them when it closes.
enum class Reading { kAsUsual, kAsItIs, kAsAWriter };
Reading ReadingOf(const std::string& path) {
  const bool has_wal = eaccess((path + "-wal").c_str(), F_OK) == 0;
  // One that is in use is not opened to look at it: closing it would let go of SQLite's locks.
  if (HasLog(path) || (!has_wal && !IsInWalMode(path))) return Reading::kAsUsual;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  const bool may_write =
      eaccess(folder.empty() ? "." : folder.c_str(), W_OK) == 0 && eaccess(path.c_str(), W_OK) == 0;
  if (may_write) return Reading::kAsAWriter;
  return has_wal ? Reading::kAsUsual : Reading::kAsItIs;
}

// Of a file that is read as it is, without locks and without other files.
std::string ImmutableUri(const std::string& path) {
  return absl::StrCat(
      "file:", absl::StrReplaceAll(path, {{"%", "%25"}, {"?", "%3f"}, {"#", "%23"}}),
      "?immutable=1");
}

// Waits until the file, with the bytes that are read from it, is on the disk. 0, or the error.
int WriteAgain(const std::string& path) {
  const FileDescriptor file(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file.open()) return errno == ENOENT ? 0 : errno;
  std::string bytes(std::size_t{1} << 20, '\0');
  for (off_t at = 0;;) {
    const ssize_t got = pread(file.get(), bytes.data(), bytes.size(), at);
    if (got < 0) return errno;
    if (got == 0) return fsync(file.get()) == 0 ? 0 : errno;
    const ssize_t wrote = pwrite(file.get(), bytes.data(), static_cast<std::size_t>(got), at);
    if (wrote <= 0) return wrote < 0 ? errno : EIO;
    at += wrote;
  }
}

// What a statement changes is only committed at its end, and some give a row before, such as PRAGMA
// journal_mode: if they are left there, SQLite commits when they are destroyed, and an error of the
// disk is said to nobody.
absl::Status RunToItsEnd(Statement& statement) {
  for (bool more = true; more;) {
    ESPALIER_ASSIGN_OR_RETURN(more, statement.Step());
  }
  return absl::OkStatus();
}

}  // namespace

// ---- Statement -------------------------------------------------------------------------------

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

void Statement::Note(int code) {
  if (bind_error_ == SQLITE_OK) bind_error_ = code;
}

void Statement::BindOne(int index, std::int64_t value) {
  Note(sqlite3_bind_int64(statement_.get(), index, value));
}

void Statement::BindOne(int index, double value) {
  if (!ChangesInSqlite(value)) {
    Note(sqlite3_bind_double(statement_.get(), index, value));
    return;
  }
  const auto bits = std::bit_cast<std::uint64_t>(value);
  std::array<unsigned char, 8> bytes{};  // most significant first, on every machine
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<unsigned char>(bits >> (8 * (bytes.size() - 1 - i)));
  }
  Note(sqlite3_bind_blob(statement_.get(), index, bytes.data(), static_cast<int>(bytes.size()),
                         SQLITE_TRANSIENT));
}

void Statement::BindOne(int index, const std::optional<double>& value) {
  if (value) {
    BindOne(index, *value);
  } else {
    Note(sqlite3_bind_null(statement_.get(), index));
  }
}

void Statement::BindOne(int index, std::string_view value) {
  // A null pointer would bind NULL.
  const char* text = value.data() == nullptr ? "" : value.data();
  Note(
      sqlite3_bind_text64(statement_.get(), index, text, value.size(), SQLITE_STATIC, SQLITE_UTF8));
}

absl::StatusOr<bool> Statement::Step() {
  int code = std::exchange(bind_error_, SQLITE_OK);
  if (code == SQLITE_OK) code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  // The message has to be read before the reset.
  absl::Status status = code == SQLITE_DONE ? absl::OkStatus() : database_->Error(code);
  sqlite3_reset(statement_.get());
  if (!status.ok()) return status;
  return false;
}

absl::Status Statement::Run() {
  const absl::Status status = Step().status();
  Reset();
  return status;
}

void Statement::Reset() { sqlite3_reset(statement_.get()); }

bool Statement::IsNull(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

bool Statement::IsNumber(int column) const {
  const int type = sqlite3_column_type(statement_.get(), column);
  return type == SQLITE_INTEGER || type == SQLITE_FLOAT;
}

std::int64_t Statement::Integer(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

double Statement::Double(int column) const {
  if (sqlite3_column_type(statement_.get(), column) != SQLITE_BLOB) {
    return sqlite3_column_double(statement_.get(), column);
  }
  const auto* bytes =
      static_cast<const unsigned char*>(sqlite3_column_blob(statement_.get(), column));
  if (sqlite3_column_bytes(statement_.get(), column) != 8) return std::nan("");
  std::uint64_t bits = 0;
  for (int i = 0; i < 8; ++i) bits = bits << 8 | bytes[i];
  return std::bit_cast<double>(bits);
}

std::optional<double> Statement::OptionalDouble(int column) const {
  if (IsNull(column)) return std::nullopt;
  return Double(column);
}

std::string Statement::Text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  if (text == nullptr) return "";
  return std::string(text,
                     static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column)));
}

// ---- Database --------------------------------------------------------------------------------

void Database::Close::operator()(sqlite3* connection) const { sqlite3_close_v2(connection); }

absl::StatusOr<std::unique_ptr<Database>> Database::Open(const std::string& path, bool read_only) {
  std::unique_ptr<Database> database(new Database(path));
  if (!read_only) MakeForThisUser(path);
  const Reading reading = read_only ? ReadingOf(path) : Reading::kAsUsual;
  const bool as_it_is = reading == Reading::kAsItIs;
  const bool as_a_writer = reading == Reading::kAsAWriter;
  const int access = as_a_writer ? SQLITE_OPEN_READWRITE
                     : read_only ? SQLITE_OPEN_READONLY
                                 : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  sqlite3* connection = nullptr;
  const int code = sqlite3_open_v2(
      (as_it_is ? ImmutableUri(path) : path).c_str(), &connection,
      access | (as_it_is ? SQLITE_OPEN_URI : 0) | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
      nullptr);
  database->connection_.reset(connection);  // there is one also after an error, to say which
  if (code != SQLITE_OK) return database->Error(code);
  sqlite3_busy_timeout(connection, kBusyTimeout_ms);
  database->only_reads_ = read_only;
  if (as_a_writer) ESPALIER_RETURN_IF_ERROR(database->Execute("PRAGMA query_only = ON"));
  return database;
}

// A log that somebody has written meanwhile, and left, is not for us to write back.
Database::~Database() {
  if (only_reads_ && HasLog(path_)) {
    sqlite3_db_config(connection_.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  }
}

absl::StatusOr<Statement> Database::Prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(connection_.get(), sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (code != SQLITE_OK) return Error(code);
  return Statement(*this, statement);
}

absl::Status Database::Execute(const char* sql) {
  const int code = sqlite3_exec(connection_.get(), sql, nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? absl::OkStatus() : Error(code);
}

absl::StatusOr<std::int64_t> Database::QueryInteger(std::string_view sql) {
  ESPALIER_ASSIGN_OR_RETURN(Statement statement, Prepare(sql));
  ESPALIER_ASSIGN_OR_RETURN(const bool row, statement.Step());
  const std::int64_t value = row ? statement.Integer(0) : 0;
  if (row) ESPALIER_RETURN_IF_ERROR(RunToItsEnd(statement));
  return value;
}

absl::StatusOr<std::string> Database::QueryText(std::string_view sql) {
  ESPALIER_ASSIGN_OR_RETURN(Statement statement, Prepare(sql));
  ESPALIER_ASSIGN_OR_RETURN(const bool row, statement.Step());
  std::string value = row ? statement.Text(0) : "";
  if (row) ESPALIER_RETURN_IF_ERROR(RunToItsEnd(statement));
  return value;
}

void Database::Rollback() {
  if (sqlite3_get_autocommit(connection_.get()) == 0) {
    // What brought us here has been reported; if even this fails, the next BEGIN says so.
    sqlite3_exec(connection_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
  }
}

absl::Status Database::WriteLogAgain() {
  // In a transaction, so that nobody else writes to the log meanwhile.
  return Transact([this] {
    const std::string log = path_ + "-wal";
    const int error = WriteAgain(log);
    if (error == 0) return absl::OkStatus();
    sqlite3_db_config(connection_.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
    return absl::InternalError(
        absl::StrCat("database ", path_, ": its log ", log,
                     " cannot be kept: ", std::generic_category().message(error)));
  });
}

absl::Status Database::Transact(const std::function<absl::Status()>& body) {
  absl::Status status = Execute("BEGIN IMMEDIATE");
  if (status.ok()) status = body();
  if (status.ok()) status = Execute("COMMIT");
  if (!status.ok()) Rollback();
  return status;
}

absl::Status Database::CopyTo(Database& copy) {
  sqlite3_backup* backup =
      sqlite3_backup_init(copy.connection_.get(), "main", connection_.get(), "main");
  if (backup == nullptr) return copy.Error(sqlite3_errcode(copy.connection_.get()));
  constexpr int kAllPages = -1;  // at once: a copy by parts would begin anew at each commit
  const int copied = sqlite3_backup_step(backup, kAllPages);
  const int finished = sqlite3_backup_finish(backup);
  if (finished != SQLITE_OK) return copy.Error(finished);
  return copied == SQLITE_DONE ? absl::OkStatus() : Error(copied);
}

std::int64_t Database::Changes() const { return sqlite3_changes64(connection_.get()); }

void Database::ReleaseMemory() { sqlite3_db_release_memory(connection_.get()); }

absl::Status Database::Error(int code) const {
  const int system_error = connection_ ? sqlite3_system_errno(connection_.get()) : 0;
  const std::string what = absl::StrCat("database ", path_, ": ");
  const std::string reason = connection_ ? sqlite3_errmsg(connection_.get()) : sqlite3_errstr(code);
  if (SpaceIsGone(code, system_error)) {
    return absl::ResourceExhaustedError(
        absl::StrCat(what, "no space left on its disk (", reason, "); free some and start again"));
  }
  if (code == SQLITE_READONLY_ROLLBACK || code == SQLITE_READONLY_RECOVERY) {
    return absl::FailedPreconditionError(
        absl::StrCat(what,
                     "the program that wrote to it was stopped in the middle; open it once with "
                     "that program, which puts it right, and try again"));
  }
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::FailedPreconditionError(
          absl::StrCat(what, "another program has locked it for more than ", kBusyTimeout_ms / 1000,
                       " s; close that program and try again"));
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
      return absl::FailedPreconditionError(
          absl::StrCat(what, "cannot be opened or written (", reason,
                       "); check the permissions of the file and of its folder"));
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::DataLossError(
          absl::StrCat(what, "is damaged (", reason,
                       "); restore a backup (tuner db restore), or use another file"));
    case SQLITE_IOERR:
      return absl::InternalError(
          absl::StrCat(what, reason, " (", std::generic_category().message(system_error), ")"));
    default:
      return absl::InternalError(absl::StrCat(what, reason));
  }
}

}  // namespace espalier
