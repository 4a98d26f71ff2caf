#include "tuner/server/engines/node_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/private_files.h"

namespace espalier {

namespace fs = std::filesystem;

absl::StatusOr<NodeDirectory> NodeDirectory::Open(const std::string& path) {
  const auto error = [&path](absl::StatusCode code, const std::string& what) {
    return absl::Status(code, absl::StrCat("directory of nodes \"", path, "\"", what));
  };
  if (const absl::Status made = KeepPrivateFolders(path); !made.ok()) {
    return error(absl::StatusCode::kInvalidArgument, absl::StrCat(": ", made.message()));
  }
  const std::string absolute = fs::absolute(path).lexically_normal().string();
  const int lock = open((absolute + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock < 0) {
    return error(absl::StatusCode::kInvalidArgument, absl::StrCat(": ", std::strerror(errno)));
  }
  if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
    close(lock);
    return error(absl::StatusCode::kFailedPrecondition,
                 " is used by another service: choose another one");
  }
  return NodeDirectory(absolute, lock);
}

NodeDirectory::NodeDirectory(NodeDirectory&& other) noexcept
    : path_(std::move(other.path_)), lock_(std::exchange(other.lock_, -1)) {}

NodeDirectory::~NodeDirectory() {
  if (lock_ >= 0) close(lock_);
}

}  // namespace espalier
