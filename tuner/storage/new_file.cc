#include "tuner/storage/new_file.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/sync_path.h"
#include "tuner/storage/database_file.h"

namespace espalier {

namespace {

namespace fs = std::filesystem;

absl::Status RefuseFile(const std::string& path, std::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat("file ", path, ": ", std::string(why)));
}

absl::Status ExistsAlready(const std::string& path) {
  return absl::AlreadyExistsError(
      absl::StrCat("file ", path, ": exists already and is not overwritten; give another name"));
}

absl::Status Failed(const std::string& path, const char* what, int error) {
  const std::string message = absl::StrCat("file ", path, ": ", what, " failed (",
                                           std::generic_category().message(error), ")");
  return error == ENOSPC || error == EDQUOT ? absl::ResourceExhaustedError(message)
                                            : absl::InternalError(message);
}

absl::Status Sync(const std::string& path) {
  const int error = SyncPath(path);
  return error == 0 ? absl::OkStatus() : Failed(path, "syncing", error);
}

}  // namespace

absl::StatusOr<NewFile> NewFile::Begin(const std::string& path) {
  std::error_code error;
  for (const char* beside : {"", "-wal", "-journal"}) {
    if (fs::exists(fs::symlink_status(CanonicalPath(path) + beside, error))) {
      return ExistsAlready(path + beside);
    }
  }
  return BeginInPlaceOf(path);
}

absl::StatusOr<NewFile> NewFile::BeginInPlaceOf(const std::string& path) {
  const std::string canonical = CanonicalPath(path);
  std::error_code error;
  const std::string folder = fs::path(canonical).parent_path().string();
  if (!fs::is_directory(folder, error)) {
    return RefuseFile(path,
                      absl::StrCat("its folder ", folder, " does not exist; create it first"));
  }
  if (eaccess(folder.c_str(), W_OK | X_OK) != 0) {
    return RefuseFile(
        path, absl::StrCat("its folder ", folder, " cannot be written: ",
                           std::generic_category().message(errno), "; give a path elsewhere"));
  }
  NewFile file(canonical, absl::StrCat(canonical, ".unfinished-", getpid()));
  if (fs::exists(file.unfinished_, error)) fs::remove(file.unfinished_, error);
  return file;
}

NewFile::NewFile(NewFile&& other) noexcept
    : path_(std::move(other.path_)), unfinished_(std::exchange(other.unfinished_, "")) {}

NewFile::~NewFile() {
  if (unfinished_.empty()) return;
  for (const char* beside : {"", "-wal", "-shm", "-journal"}) {
    unlink((unfinished_ + beside).c_str());
  }
}

// SQLite writes a log back when its file is closed, and takes no notice where the disk fails there:
// the file alone is then only a part of the database.
absl::Status NewFile::CheckLogIsWrittenBack() const {
  for (const char* beside : {"-wal", "-journal"}) {
    std::error_code none;
    const auto bytes = fs::file_size(unfinished_ + beside, none);
    if (none || bytes == 0) continue;
    return absl::InternalError(
        absl::StrCat("file ", unfinished_, ": what is in its log ", unfinished_, beside, " (",
                     bytes, " bytes) could not be written to it; see to its disk and try again"));
  }
  return absl::OkStatus();
}

absl::Status NewFile::Keep() {
  ESPALIER_RETURN_IF_ERROR(CheckLogIsWrittenBack());
  ESPALIER_RETURN_IF_ERROR(Sync(unfinished_));
  // A link, unlike a rename, does not take the place of a file that has come meanwhile.
  if (link(unfinished_.c_str(), path_.c_str()) != 0) {
    const int error = errno;
    if (error == EEXIST) return ExistsAlready(path_);
    if (error != EPERM && error != EOPNOTSUPP) return Failed(path_, "linking", error);
    // A file system without links.
    if (rename(unfinished_.c_str(), path_.c_str()) != 0) return Failed(path_, "renaming", errno);
  }
  return Sync(fs::path(path_).parent_path().string());
}

absl::Status NewFile::Replace() {
  ESPALIER_RETURN_IF_ERROR(CheckLogIsWrittenBack());
  ESPALIER_RETURN_IF_ERROR(Sync(unfinished_));
  if (rename(unfinished_.c_str(), path_.c_str()) != 0) return Failed(path_, "renaming", errno);
  return Sync(fs::path(path_).parent_path().string());
}

std::string FreeName(const std::string& path) {
  const auto taken = [](const std::string& name) {
    std::error_code error;
    for (const char* beside : {"", "-wal", "-journal"}) {
      if (fs::exists(fs::symlink_status(name + beside, error))) return true;
    }
    return false;
  };
  std::string name = path;
  for (int n = 2; taken(name); ++n) name = absl::StrCat(path, "-", n);
  return name;
}

}  // namespace espalier
