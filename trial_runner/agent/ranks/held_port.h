#pragma once

#include <utility>

#include "base/file_descriptor.h"
#include "base/port_range.h"
#include "base/status.h"

namespace espalier {

// A TCP port that no other program is given as long as this lives, but that one which listens with
// SO_REUSEADDR, as PyTorch does, may take.
class HeldPort {
 public:
  // One of the range; the error names it.
  static absl::StatusOr<HeldPort> In(const PortRange& range);

  int number() const { return number_; }

 private:
  HeldPort(FileDescriptor socket, int number) : socket_(std::move(socket)), number_(number) {}

  FileDescriptor socket_;  // bound, and not listening
  int number_;
};

}  // namespace espalier
