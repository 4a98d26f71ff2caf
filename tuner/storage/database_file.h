#pragma once

#include <string>

#include "base/status.h"

namespace espalier {

// Holds PATH.lock for the one service that may write a database. The kernel releases the lock with
// the process, however that ends; a lock file that a killed service left behind locks nothing.
//
// It is a file of its own, because SQLite's locks on the database are POSIX locks: opening and
// closing that file a second time in this process would silently drop them.
class ServiceLock {
 public:
  static absl::StatusOr<ServiceLock> Acquire(const std::string& database);

  ServiceLock(ServiceLock&& other) noexcept;
  ServiceLock& operator=(ServiceLock&&) = delete;
  ~ServiceLock();

 private:
  ServiceLock(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  std::string path_;
  int fd_;
};

// Refuses what could not be used anyway, before anything is created: a folder that is missing, a
// file of another kind, missing permissions. The file may be absent unless it is only to be read.
// `wanted` says in messages what kind of file is expected.
absl::Status CheckDatabaseFile(const std::string& path, bool read_only,
                               const std::string& wanted = "an Espalier database");

// Logs a warning, with what to do, if users other than the database's own may read an existing
// file. New files are made so that they may not.
void WarnIfOthersRead(const std::string& path);

// Absolute and without symbolic links, so that all names of a database lead to the same lock.
std::string CanonicalPath(const std::string& path);

}  // namespace espalier
