#pragma once

#include <string>

namespace espalier {

// Whether to end a study. The reason has figures in it; of a study that goes on it is empty, or
// says what its terminator lacks to judge at all.
struct TerminatorVerdict {
  bool ends = false;
  std::string reason{};
};

}  // namespace espalier
