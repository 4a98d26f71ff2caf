#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "base/file_descriptor.h"
#include "base/status.h"

namespace espalier {

// Holds a database for the one service that may write it. The file itself is locked, so that all
// its names lead to the same lock: links, mounts, a name it is given later. The kernel releases the
// lock with the process, however that ends.
//
// SQLite's own locks on the file are POSIX locks, which the kernel drops when any descriptor of the
// process to that file is closed: this is destroyed after the last connection.
class ServiceLock {
 public:
  // Makes the file, for its user alone, if it is absent.
  static absl::StatusOr<ServiceLock> Acquire(const std::string& database);

  // From now on the one who comes second is told the number of this process. Only once SQLite has
  // the file open for good: it drops all POSIX locks when it lets go of its own.
  void ShowOwner() const;

  // SQLite's log and the log's index have been made: from now on they belong to the database. What
  // is committed is in the log alone until SQLite writes it back.
  void KeepLog();

  // An error, which says what has become of it, if the path of the database, or of its log, does
  // not lead to the same file any more. Costs four calls of the system.
  absl::Status CheckStillThere() const;

 private:
  ServiceLock(std::string database, FileDescriptor file)
      : database_(std::move(database)), file_(std::move(file)) {}

  // By its number alone: SQLite's locks on it would go with a descriptor.
  struct FileBeside {
    std::string path;
    dev_t device = 0;
    ino_t inode = 0;
  };

  std::string database_;
  FileDescriptor file_;
  std::vector<FileBeside> log_;
};

// Refuses what could not be used anyway, before anything is created: a folder that is missing, a
// file of another kind, missing permissions. The file may be absent unless it is only to be read.
// `wanted` says in messages what kind of file is expected.
absl::Status CheckDatabaseFile(const std::string& path, bool read_only,
                               const std::string& wanted = "an Espalier database");

// Logs a warning, with what to do, if users other than the database's own may read an existing
// file. New files are made so that they may not.
void WarnIfOthersRead(const std::string& path);

// Absolute and without symbolic links: SQLite keeps its log beside the file itself.
std::string CanonicalPath(const std::string& path);

}  // namespace espalier
