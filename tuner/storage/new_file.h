#pragma once

#include <string>

#include "tuner/base/status.h"

namespace espalier {

// A database file in the making: written under another name in the same folder, and there under its
// own only when it is complete and synced. What exists already is never overwritten. Unless it was
// kept, the object's end removes all that was written.
class NewFile {
 public:
  static absl::StatusOr<NewFile> Begin(const std::string& path);

  NewFile(NewFile&& other) noexcept;
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile();

  const std::string& unfinished() const { return unfinished_; }  // where to write
  // Whoever wrote must have closed the file.
  absl::Status Keep();

 private:
  NewFile(std::string path, std::string unfinished)
      : path_(std::move(path)), unfinished_(std::move(unfinished)) {}

  std::string path_;
  std::string unfinished_;
};

}  // namespace espalier
