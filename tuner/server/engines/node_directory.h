#pragma once

#include <string>

#include "base/status.h"

namespace espalier {

// The folder in which an engine keeps what belongs to its nodes, each in a folder by its name. Held
// by one engine at a time, of all processes. One owner.
class NodeDirectory {
 public:
  // Makes the folder where it is missing. Refuses one that cannot be written to, or that another
  // engine uses.
  static absl::StatusOr<NodeDirectory> Open(const std::string& path);

  NodeDirectory(NodeDirectory&& other) noexcept;
  NodeDirectory& operator=(NodeDirectory&&) = delete;
  ~NodeDirectory();

  const std::string& path() const { return path_; }  // absolute
  std::string Of(const std::string& name) const { return path_ + "/" + name; }

 private:
  NodeDirectory(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}

  std::string path_;
  int lock_;  // open file
};

}  // namespace espalier
