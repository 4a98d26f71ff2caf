#pragma once

#include <vector>

#include "base/file_descriptor.h"

namespace espalier {

// In which order processes have ended. The system lines their ends up as they come, so that it does
// not matter how late one looks. Not thread-safe.
class EndOrder {
 public:
  EndOrder();

  // `process` is a pidfd. One that has ended already is not told of: what ended before it is not
  // known.
  void Watch(int number, FileDescriptor process);
  // Becomes readable when one has ended.
  int fd() const { return ends_.get(); }
  // The numbers of those that have ended since the last call, the first one first.
  std::vector<int> Take();

 private:
  FileDescriptor ends_;
  std::vector<FileDescriptor> watched_;
};

}  // namespace espalier
