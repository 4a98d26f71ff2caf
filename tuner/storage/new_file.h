#pragma once

#include <string>

#include "base/status.h"

namespace espalier {

// A database file in the making: it is written under another name in the same folder, and gets its
// own name only when it is complete and synced. An existing file is never overwritten. Unless the
// file was kept, the destructor removes all that was written.
class NewFile {
 public:
  // ALREADY_EXISTS also where there is a log of that name, which SQLite would take for this file's.
  static absl::StatusOr<NewFile> Begin(const std::string& path);
  // Where a file has the name until shortly before Keep.
  static absl::StatusOr<NewFile> BeginInPlaceOf(const std::string& path);

  NewFile(NewFile&& other) noexcept;
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile();

  const std::string& unfinished() const { return unfinished_; }  // where to write
  // INTERNAL: it has a log beside it that was not written back when the writer closed it, so that
  // the file is not all of the database.
  absl::Status CheckLogIsWrittenBack() const;
  // The writer must have closed the file. Fails where that check does.
  absl::Status Keep();
  // The same in the place of a file that has the name: at no moment does nothing have it.
  absl::Status Replace();

 private:
  NewFile(std::string path, std::string unfinished)
      : path_(std::move(path)), unfinished_(std::move(unfinished)) {}

  std::string path_;
  std::string unfinished_;
};

// For a database: the path, or PATH-2, PATH-3, ... where there is one of that name, or the log of
// one, which SQLite would take for the log of this one.
std::string FreeName(const std::string& path);

}  // namespace espalier
