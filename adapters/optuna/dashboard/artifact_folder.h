#pragma once

#include <string>

#include "base/status.h"

namespace espalier::optuna_dashboard {

inline constexpr std::size_t kMaxArtifactBytes = std::size_t{64} << 20;

// Where the contents of artifacts are: one file each, named by its id, as Optuna's
// FileSystemArtifactStore has them. Any thread; ids are checked, so nothing outside is reached.
class ArtifactFolder {
 public:
  // `path` empty: there is none, and every call says so.
  explicit ArtifactFolder(std::string path) : path_(std::move(path)) {}

  bool available() const { return !path_.empty(); }

  absl::Status Write(const std::string& id, const std::string& content) const;
  absl::StatusOr<std::string> Read(const std::string& id) const;
  absl::Status Remove(const std::string& id) const;

 private:
  absl::StatusOr<std::string> FileOf(const std::string& id) const;

  std::string path_;
};

// A random id of the form 8-4-4-4-12 (RFC 4122, version 4).
std::string NewUuid();

// By the name's ending, as Python's mimetypes knows it; "application/octet-stream" for others.
// `encoding` is "gzip" where the ending says so, else empty.
std::string MimeType(const std::string& filename, std::string& encoding);

// "data:TYPE;base64,..." to what it holds.
absl::StatusOr<std::string> DataOfUri(const std::string& uri);

}  // namespace espalier::optuna_dashboard
