#include "tuner/storage/database_file.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file_descriptor.h"
#include "tuner/storage/storage.h"

namespace espalier {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSqliteMagic("SQLite format 3\0", 16);

std::string Reason(int error) { return std::generic_category().message(error); }

absl::Status Refuse(const std::string& path, std::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat("database ", path, ": ", std::string(why)));
}

// Far from the bytes that SQLite locks (https://sqlite.org/c3ref/io_methods.html, from 1 GiB on)
// and from all data. The first is locked by the open file, whatever else of the process is closed;
// the second by the process, which the kernel can then name.
constexpr off_t kLockedByOpenFile = off_t{1} << 62;
constexpr off_t kLockedByProcess = kLockedByOpenFile + 1;

struct flock LockOf(off_t byte) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  return lock;
}

// Who has locked the byte: a process, -1 if it is an open file or unknown; nullopt: nobody.
std::optional<pid_t> HolderOfByte(const FileDescriptor& file, off_t byte) {
  struct flock lock = LockOf(byte);
  if (fcntl(file.get(), F_OFD_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return std::nullopt;
  return lock.l_pid;
}

std::string OwnerOf(const FileDescriptor& file) {
  const pid_t owner = HolderOfByte(file, kLockedByProcess).value_or(-1);
  return owner > 0 ? absl::StrCat(owner) : "";
}

absl::Status InUse(const std::string& database, const std::string& owner) {
  return Refuse(database, absl::StrCat("another tuner service has it open",
                                       owner.empty() ? "" : " (process " + owner + ")",
                                       "; stop that one first, or give another file"));
}

// Releases up to schema 13 locked DATABASE.lock instead.
bool FormerReleaseHasIt(const std::string& database) {
  const FileDescriptor file(open((database + ".lock").c_str(), O_RDONLY | O_CLOEXEC));
  return file.open() && flock(file.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

// Any other error tells nothing of the file: it may be a folder that cannot be searched any more.
bool NothingThere(int error) { return error == ENOENT || error == ENOTDIR || error == ESTALE; }

struct FileAtPath {
  bool same = false;     // as the open one
  bool gone = false;     // nothing has this name
  bool removed = false;  // the open file has no name at all
  nlink_t names = 0;     // of the open file
};

FileAtPath Compare(const std::string& path, const FileDescriptor& file) {
  struct stat opened {};
  struct stat named {};
  if (fstat(file.get(), &opened) != 0) return {};
  const bool found = stat(path.c_str(), &named) == 0;
  const bool gone = !found && NothingThere(errno);
  return {.same = found ? opened.st_ino == named.st_ino && opened.st_dev == named.st_dev : !gone,
          .gone = gone,
          .removed = opened.st_nlink == 0,
          .names = opened.st_nlink};
}

// SQLite's log has the name of the database: what one name has left in it, another does not see.
void WarnOfOtherNames(const std::string& path, nlink_t names) {
  if (names < 2) return;
  spdlog::warn(
      "database {}: the file has {} names (hard links): always use the same one, as what is in the "
      "log {}-wal is not seen under another, and no link is a backup: tuner db backup makes one",
      path, names, path);
}

// At most so many bytes of the file; "" if it cannot be read.
std::string FirstBytes(const std::string& path, std::size_t most) {
  std::string bytes(most, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(bytes.data(), static_cast<std::streamsize>(most));
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  return bytes;
}

// Whether the journal beside the file is that of its first transaction: SQLite makes the file empty
// with it (https://sqlite.org/fileformat2.html, "The Rollback Journal": the magic, and at byte 16
// the number of pages that the file had before).
bool JournalMakesItEmpty(const std::string& path) {
  constexpr std::string_view kJournalMagic("\xd9\xd5\x05\xf9\x20\xa1\x63\xd7", 8);
  constexpr std::string_view kNoPages("\0\0\0\0", 4);
  constexpr std::size_t kPagesBefore = 16;
  const std::string header = FirstBytes(path + "-journal", kPagesBefore + kNoPages.size());
  return header.starts_with(kJournalMagic) && header.size() == kPagesBefore + kNoPages.size() &&
         header.ends_with(kNoPages);
}

// Whether it is a new database that was cut off while SQLite made it: a loss of power leaves its
// first page with zeros in it, or a part of the page. SQLite makes it empty and goes on from there,
// and nothing of anybody's is in it.
bool WasCutOffWhileItWasMade(const std::string& path) {
  constexpr std::size_t kLargestPage = 65536;
  const std::string bytes = FirstBytes(path, kLargestPage + 1);
  if (bytes.size() > kLargestPage) return false;
  const auto written =
      std::mismatch(bytes.begin(), bytes.end(), kSqliteMagic.begin(), kSqliteMagic.end()).first;
  return std::all_of(written, bytes.end(), [](char byte) { return byte == '\0'; }) &&
         JournalMakesItEmpty(path);
}

absl::Status CheckContent(const std::string& path, bool read_only, const std::string& wanted) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return Refuse(path, absl::StrCat("cannot be read: ", Reason(errno)));
  std::array<char, kSqliteMagic.size()> start{};
  file.read(start.data(), start.size());
  const std::string_view read(start.data(), static_cast<std::size_t>(file.gcount()));
  if (read.empty() || read == kSqliteMagic) return absl::OkStatus();
  if (WasCutOffWhileItWasMade(path)) return absl::OkStatus();
  return Refuse(path, absl::StrCat("is not an SQLite database; give the path of ", wanted,
                                   read_only ? "" : ", or of a file that does not exist yet"));
}

}  // namespace

std::optional<std::string> HolderOf(const std::string& path) {
  const FileDescriptor file(open(CanonicalPath(path).c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.open() || !HolderOfByte(file, kLockedByOpenFile)) return std::nullopt;
  return OwnerOf(file);
}

absl::StatusOr<ServiceLock> ServiceLock::Acquire(const std::string& database) {
  constexpr int kTries = 10;
  for (int i = 0; i < kTries; ++i) {
    FileDescriptor file(open(database.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!file.open()) return Refuse(database, absl::StrCat("cannot be opened: ", Reason(errno)));
    struct flock lock = LockOf(kLockedByOpenFile);
    if (fcntl(file.get(), F_OFD_SETLK, &lock) != 0) {
      if (errno == EAGAIN || errno == EACCES) return InUse(database, OwnerOf(file));
      return Refuse(database, absl::StrCat("cannot be locked: ", Reason(errno),
                                           "; use a file system that has locks"));
    }
    if (FormerReleaseHasIt(database)) return InUse(database, "");
    // It may have been renamed between opening and locking.
    const FileAtPath at_path = Compare(database, file);
    if (!at_path.same || at_path.removed) continue;
    WarnOfOtherNames(database, at_path.names);
    return ServiceLock(database, std::move(file));
  }
  return Refuse(database,
                "its name leads to another file each time that it is looked at; use a file system "
                "whose files can be told apart");
}

void ServiceLock::ShowOwner() const {
  struct flock lock = LockOf(kLockedByProcess);
  fcntl(file_.get(), F_SETLK, &lock);
}

void ServiceLock::KeepLog() {
  for (const char* beside : {"-wal", "-shm"}) {
    const std::string path = database_ + beside;
    struct stat named {};
    if (stat(path.c_str(), &named) == 0) log_.push_back({path, named.st_dev, named.st_ino});
  }
}

absl::Status ServiceLock::CheckStillThere() const {
  const FileAtPath at_path = Compare(database_, file_);
  if (!at_path.same || at_path.removed) {
    const char* what =
        at_path.removed ? "the file was removed" : "the file was renamed or moved away";
    return Refuse(
        database_,
        absl::StrCat(what, at_path.gone ? "" : ", and another put in its place,",
                     " while the service ran, which would acknowledge what nobody finds again; ",
                     at_path.removed ? "start it again on a backup (tuner db restore)"
                                     : "put the file back and start it again",
                     ", and stop a service before its database is moved"));
  }
  for (const FileBeside& kept : log_) {
    struct stat named {};
    const bool found = stat(kept.path.c_str(), &named) == 0;
    if (found ? named.st_dev == kept.device && named.st_ino == kept.inode : !NothingThere(errno)) {
      continue;
    }
    return Refuse(database_,
                  absl::StrCat("its log ", kept.path, " was ", found ? "replaced" : "removed",
                               " while the service ran, which would acknowledge what nobody finds "
                               "again; start it again: what was acknowledged is in the database"));
  }
  return absl::OkStatus();
}

absl::Status CheckDatabaseFile(const std::string& path, bool read_only, const std::string& wanted) {
  const std::string folder = fs::path(path).parent_path().string();
  std::error_code error;
  const fs::file_status there = fs::status(folder, error);
  if (there.type() != fs::file_type::none && !fs::is_directory(there)) {
    return Refuse(path, absl::StrCat("its folder ", folder, " does not exist; create it first"));
  }
  if (eaccess(folder.c_str(), X_OK) != 0) {
    return Refuse(path,
                  absl::StrCat("its folder ", folder, " may not be entered: ", Reason(errno)));
  }
  const fs::file_status file = fs::status(path, error);
  if (!fs::exists(file)) {
    if (file.type() != fs::file_type::not_found) {
      return Refuse(path, absl::StrCat("cannot be read: ", error.message()));
    }
    if (read_only) return Refuse(path, absl::StrCat("no such file; give the path of ", wanted));
  } else if (!fs::is_regular_file(file)) {
    return Refuse(path, absl::StrCat("is not a file; give the path of ", wanted));
  } else {
    ESPALIER_RETURN_IF_ERROR(CheckContent(path, read_only, wanted));
    if (!read_only && eaccess(path.c_str(), W_OK) != 0) {
      return Refuse(path, absl::StrCat("cannot be written: ", Reason(errno),
                                       "; change its permissions, or give another file"));
    }
  }
  if (!read_only && eaccess(folder.c_str(), W_OK | X_OK) != 0) {
    return Refuse(path, absl::StrCat("its folder ", folder, " cannot be written: ", Reason(errno),
                                     "; SQLite keeps its log beside the file: change the folder's "
                                     "permissions, or give a path elsewhere"));
  }
  return absl::OkStatus();
}

void WarnIfOthersRead(const std::string& path) {
  constexpr mode_t kOthersRead = S_IRGRP | S_IROTH;
  struct stat status {};
  if (stat(path.c_str(), &status) != 0 || (status.st_mode & kOthersRead) == 0) return;
  spdlog::warn(
      "database {}: other users of this machine may read it, and all studies and parameters in it "
      "(mode {:o}): chmod 600 {}*",
      path, status.st_mode & 07777, path);
}

std::string CanonicalPath(const std::string& path) {
  std::error_code error;
  fs::path canonical = fs::weakly_canonical(fs::absolute(path, error), error);
  return error ? path : canonical.string();
}

}  // namespace espalier
