#pragma once

#include <string_view>

namespace espalier::benchmarks {

// Whether the first argument is --smoke: run as briefly as possible, and still through everything.
// The figures of such a run mean nothing.
inline bool IsSmoke(int argc, char** argv) {
  return argc > 1 && std::string_view(argv[1]) == "--smoke";
}

}  // namespace espalier::benchmarks
