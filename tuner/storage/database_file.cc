#include "tuner/storage/database_file.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

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
#include "tuner/storage/storage.h"

namespace espalier {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSqliteMagic("SQLite format 3\0", 16);

std::string Reason(int error) { return std::generic_category().message(error); }

absl::Status Refuse(const std::string& path, std::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat("database ", path, ": ", std::string(why)));
}

// Whether the file at `path` still is the one that is open as `fd`: its last holder may have
// removed it between our opening and locking it.
bool StillThere(const std::string& path, int fd) {
  struct stat opened {};
  struct stat named {};
  return fstat(fd, &opened) == 0 && stat(path.c_str(), &named) == 0 &&
         opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

// Only for the message of the one who comes second.
void WriteOwner(int fd) {
  const std::string text = absl::StrCat(getpid(), "\n");
  if (ftruncate(fd, 0) != 0) return;
  [[maybe_unused]] const ssize_t written = pwrite(fd, text.data(), text.size(), 0);
}

std::string ReadOwner(int fd) {
  std::array<char, 16> text{};
  const ssize_t size = pread(fd, text.data(), text.size(), 0);
  std::string owner(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  while (!owner.empty() && owner.back() == '\n') owner.pop_back();
  return owner;
}

absl::Status InUse(const std::string& database, int fd) {
  const std::string owner = ReadOwner(fd);
  return Refuse(database, absl::StrCat("another tuner service has it open",
                                       owner.empty() ? "" : " (process " + owner + ")",
                                       "; stop that one first, or give another file"));
}

absl::Status CheckContent(const std::string& path, const std::string& wanted) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return Refuse(path, absl::StrCat("cannot be read: ", Reason(errno)));
  std::array<char, kSqliteMagic.size()> start{};
  file.read(start.data(), start.size());
  const std::string_view read(start.data(), static_cast<std::size_t>(file.gcount()));
  if (read.empty() || read == kSqliteMagic) return absl::OkStatus();
  return Refuse(path, absl::StrCat("is not an SQLite database; give the path of ", wanted,
                                   ", or of a file that does not exist yet"));
}

}  // namespace

std::optional<std::string> HolderOf(const std::string& path) {
  const int fd = open((CanonicalPath(path) + ".lock").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  std::optional<std::string> holder;
  if (flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK) holder = ReadOwner(fd);
  close(fd);
  return holder;
}

absl::StatusOr<ServiceLock> ServiceLock::Acquire(const std::string& database) {
  const std::string path = database + ".lock";
  while (true) {
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) {
      return Refuse(database, absl::StrCat("cannot create ", path, ": ", Reason(errno)));
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
      const int error = errno;
      const absl::Status status =
          error == EWOULDBLOCK
              ? InUse(database, fd)
              : Refuse(database, absl::StrCat("cannot lock ", path, ": ", Reason(error)));
      close(fd);
      return status;
    }
    if (StillThere(path, fd)) {
      WriteOwner(fd);
      return ServiceLock(path, fd);
    }
    close(fd);
  }
}

ServiceLock::ServiceLock(ServiceLock&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

ServiceLock::~ServiceLock() {
  if (fd_ < 0) return;
  unlink(path_.c_str());
  close(fd_);
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
    ESPALIER_RETURN_IF_ERROR(CheckContent(path, wanted));
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
