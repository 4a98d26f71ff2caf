#include "base/private_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/file_descriptor.h"
#include "base/status.h"
#include "base/sync_path.h"

namespace espalier {
namespace {

absl::Status CannotWrite(const std::string& path, int error) {
  return absl::FailedPreconditionError(
      absl::StrCat("cannot write ", path, ": ", std::strerror(error)));
}

absl::Status WriteAll(int file, const std::string& path, std::string_view left) {
  while (!left.empty()) {
    const ssize_t wrote = write(file, left.data(), left.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return CannotWrite(path, errno);
    left.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return absl::OkStatus();
}

// With `sync`, the text is on the disk before the name is: a loss of power in between could leave
// an empty file.
absl::Status WriteFresh(const std::string& fresh, const std::string& path, const std::string& text,
                        bool sync) {
  const FileDescriptor file(open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.open()) return CannotWrite(fresh, errno);
  ESPALIER_RETURN_IF_ERROR(WriteAll(file.get(), fresh, text));
  if (sync && fsync(file.get()) != 0) return CannotWrite(fresh, errno);
  if (rename(fresh.c_str(), path.c_str()) != 0) return CannotWrite(path, errno);
  return absl::OkStatus();
}

absl::Status Write(const std::string& path, const std::string& text, bool sync) {
  const std::string fresh = path + ".new";
  unlink(fresh.c_str());  // one that is left over would keep its mode
  absl::Status status = WriteFresh(fresh, path, text, sync);
  if (!status.ok()) unlink(fresh.c_str());  // on a full disk it takes what is left
  return status;
}

}  // namespace

absl::Status MakePrivateFolders(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path whole = fs::absolute(path, error).lexically_normal();
  if (error) return CannotWrite(path, error.value());
  fs::path so_far;
  for (const fs::path& part : whole) {
    if (part.empty()) continue;
    so_far /= part;
    if (mkdir(so_far.c_str(), 0700) == 0 || errno == EEXIST) continue;
    const int cause = errno;  // a folder above that we may not write to is there all the same
    if (!fs::is_directory(so_far, error)) return CannotWrite(so_far.string(), cause);
  }
  if (!fs::is_directory(whole, error)) return CannotWrite(whole.string(), ENOTDIR);
  return absl::OkStatus();
}

absl::Status KeepPrivateFolders(const std::string& path) {
  ESPALIER_RETURN_IF_ERROR(MakePrivateFolders(path));
  const int error = SyncFoldersAbove(path);
  return error == 0 ? absl::OkStatus() : CannotWrite(path, error);
}

absl::Status WritePrivateFile(const std::string& path, const std::string& text) {
  return Write(path, text, /*sync=*/false);
}

absl::Status KeepPrivateFile(const std::string& path, const std::string& text) {
  ESPALIER_RETURN_IF_ERROR(Write(path, text, /*sync=*/true));
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const int error = SyncPath(folder.empty() ? "." : folder);
  return error == 0 ? absl::OkStatus() : CannotWrite(folder, error);
}

std::string TextOfFile(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace espalier
