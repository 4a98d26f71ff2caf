#include "tuner/study_file/text_file.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace espalier {

absl::StatusOr<std::string> ReadTextFile(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return absl::InvalidArgumentError("is a folder, not a file");
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    const int reason = errno;
    if (reason == ENOENT) return absl::InvalidArgumentError("no such file");
    return absl::InvalidArgumentError(
        absl::StrCat("cannot be read: ", std::generic_category().message(reason)));
  }
  // One byte more than allowed tells a file that is too long, also where size is not known ahead.
  std::string text(kMaxTextFileBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return absl::InvalidArgumentError("cannot be read to its end");
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kMaxTextFileBytes) {
    return absl::InvalidArgumentError(absl::StrCat("has more than ", kMaxTextFileBytes, " bytes"));
  }
  return text;
}

}  // namespace espalier
