#include "trial_runner/agent/log_limit.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/file_descriptor.h"

namespace espalier {
namespace {

constexpr std::int64_t kHeadShare = 8;
constexpr std::int64_t kTailShare = 2;

absl::Status LogError(const std::string& path) {
  return absl::InternalError(absl::StrCat("log ", path, " cannot be cut: ", strerror(errno)));
}

bool WriteAll(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

// From there to the end, which may move meanwhile; at most so many bytes.
std::optional<std::string> ReadFrom(int file, off_t begin, std::size_t most) {
  std::string text(most, '\0');
  std::size_t size = 0;
  while (size < most) {
    const ssize_t got =
        pread(file, text.data() + size, most - size, begin + static_cast<off_t>(size));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  text.resize(size);
  return text;
}

// What it has cut out; nullopt: it cannot.
std::optional<LogCut> CutOut(int file, off_t head, off_t tail, off_t block) {
  const off_t begin = (head + block - 1) / block * block;
  const off_t size = (tail - begin) / block * block;
  if (size <= 0 || fallocate(file, FALLOC_FL_COLLAPSE_RANGE, begin, size) != 0) return std::nullopt;
  return LogCut{begin, size};
}

bool CopyEnd(int file, off_t head, off_t tail, std::size_t most) {
  const std::optional<std::string> end = ReadFrom(file, tail, most);
  // From now on, as the programs do.
  return end && ftruncate(file, head) == 0 && fcntl(file, F_SETFL, O_APPEND) == 0 &&
         WriteAll(file, *end);
}

}  // namespace

absl::StatusOr<LogCut> TrimLog(const std::string& path, std::int64_t limit, TrimBy by) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) return LogCut{};
    return LogError(path);
  }
  if (!S_ISREG(status.st_mode) || status.st_size <= limit) return LogCut{};
  const FileDescriptor file(open(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file.open()) return LogError(path);
  const off_t head = limit / kHeadShare;
  const off_t tail = status.st_size - limit / kTailShare;
  const std::string notice =
      absl::StrCat("\n[output is left out here: the log has a limit of ", limit, " bytes]\n");
  const auto note = static_cast<off_t>(notice.size());
  // Over the end of the head, which stays where it is.
  if (pwrite(file.get(), notice.data(), notice.size(), head - note) != note) return LogError(path);
  if (by == TrimBy::kAnyMeans) {
    if (const auto cut = CutOut(file.get(), head, tail, status.st_blksize)) return *cut;
  }
  if (CopyEnd(file.get(), head, tail, static_cast<std::size_t>(limit))) {
    return LogCut{head, tail - head};
  }
  return LogError(path);
}

}  // namespace espalier
