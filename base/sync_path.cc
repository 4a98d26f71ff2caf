#include "base/sync_path.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/file_descriptor.h"

namespace espalier {

int SyncPath(const std::string& path) {
  const FileDescriptor there(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return there.open() && fsync(there.get()) == 0 ? 0 : errno;
}

int SyncFoldersAbove(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path folder = fs::absolute(path, error).lexically_normal();
  if (!error && !folder.has_filename()) folder = folder.parent_path();  // "a/b/"
  int first_error = 0;
  while (!error && folder != folder.parent_path()) {
    folder = folder.parent_path();
    const int failed = SyncFolder(folder.string());
    if (first_error == 0) first_error = failed;
  }
  return first_error;
}

int SyncFolder(const std::string& folder) {
  const FileDescriptor there(open(folder.c_str(), O_RDONLY | O_CLOEXEC));
  const bool synced = !there.open() || fsync(there.get()) == 0 || errno == EINVAL ||
                      errno == EROFS || errno == ENOTSUP;
  return synced ? 0 : errno;
}

}  // namespace espalier
